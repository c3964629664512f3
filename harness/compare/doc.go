// Package compare compares runs of one scenario on two subjects. [SideOf] reads a run and gives
// its objects names that are equal in every run of the scenario. [Differences] returns the
// differences between two runs, and classifies each. The tables of rules [Deliberate],
// [Incomparable] and [Acceptable] determine the classification. A difference that no rule
// covers is undeclared.
//
// [CostOf] measures the cost of a run, such as CPU time and requests, from its history.
// [Ratios] compares the costs of several pairs of runs. A pair is one run on each subject,
// executed one after the other on equal control planes. Like package check, this package reads
// histories and never contacts a cluster.
package compare
