"""Child processes that train and time: start, feed, listen, time out, clear up after them."""
