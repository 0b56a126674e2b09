"""The figures of a report; only these modules and those of a search's figures import matplotlib.

names             names and formats of the figures
all               every figure for which a report has content
panels            success rates, times to success and metrics against the swept hyperparameter
effects           the mean over each of many axes
ranking           methods in order, and their differences to the best one
profiles          shares of trials better than a threshold, over tasks
sources           variance shares of sources of randomness, and the benefit of more trials
improvement       probabilities that one method is better than another, over tasks
survival          time to success
heat_map          success rate over two numbers
learning_curves   errors over the iterations
gates, weights    learned gates and weights
dots              rows as the dots and lines of `panels`
multiples         small multiples, and coloured fields
axes              positions of rows on an axis, styles of curves, the legend
scales            limits of axes, and marks for values beyond them
texts             lengths and line breaks of texts
style             colours, files, values at a pointer
inline            figures embedded in a page

The figures of a search are in `study.reports.search.figures`.
"""
