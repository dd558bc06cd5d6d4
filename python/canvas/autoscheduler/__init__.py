"""AutoScheduler's interface over the tuner: tasks, `schedule`, configs (docs/autoscheduler.md).

What its programs imported from auto_schedule.task and auto_schedule.scheduler stands in
canvas.autoscheduler.task and canvas.autoscheduler.scheduler, under the same names.
"""
