// Package compare compares runs of one scenario on two controllers under test (subjects). [SideOf]
// reads a run's history and gives the run's objects names that are equal in every run of the
// scenario. [Differences] returns the differences between two runs, and classifies each
// difference. Three tables of rules determine the classification: [Deliberate], [Incomparable] and
// [Acceptable]. A difference that no rule covers is undeclared.
//
// [CostOf] reads from a history what the subject used, such as CPU time and requests. [Ratios]
// compares the costs of several pairs of runs. A pair is one run on each subject, executed one
// after the other on equal control planes. Like package check, this package reads histories and
// never contacts a cluster.
package compare
