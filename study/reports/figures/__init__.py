"""The figures of a report; the only files that import matplotlib.

names             what figures there are, and their formats
all               every figure that a report has something for
panels            success rates, times to success and metrics against what is swept
effects           the mean over each of many axes
ranking           methods in order, and their differences to the best one
profiles          how often methods are better than a threshold, over tasks
sources           which randomness matters: shares of the variance, and what more trials would bring
improvement       how likely one method is better than another, over tasks
survival          time to success
heat_map          success rate over two numbers
learning_curves   errors over the iterations
gates, weights    what trials have learned
search_...        how a search went, what was chosen, the front, what mattered; search_axes is what they share
dots              rows as the dots and lines of `panels`
multiples         small multiples, and coloured fields
axes              where rows stand on an axis, how curves look, the legend
scales            which values an axis shows, and how others are marked
style             colours, files, values under a pointer
"""
