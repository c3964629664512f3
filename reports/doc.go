// Package reports writes the verdicts of runs in several formats. [Terminal] writes text,
// [JSON] writes JSON, and [JUnit] writes JUnit XML. [Markdown] writes the summary of a CI job,
// [Annotations] writes GitHub annotations, and [HTML] writes a self-contained page. JSON and
// JUnit keep the order of the runs. The other formats show the worst verdict first.
//
// Comparisons of two controllers under test (subjects) have other reports. [Compared] writes text,
// and [WriteComparisons] writes Markdown, JSON and HTML files.
//
// This package decides no verdicts: the verdicts and their reasons come from package check and
// from the run. It needs no cluster, so "gauntlet report" can write the reports of a saved run
// again at any time.
//
// The HTML page loads no other files. It contains its style, its script, the chart library
// (assets/), and the timeline as JSON (drawing.go). Package timeline builds the timeline from
// the history. The tests open the page in Chromium if it is installed.
//
// # verdicts.json
//
// JSON writes one object. docs/reference/verdicts.md has examples and the other files.
//
//	schema    the version of this format, 2; it increases when a field is renamed, is removed
//	          or changes its meaning, but not when a field is added
//	verdict   the worst verdict of all runs: fail, unknown, known-upstream, pass or not-exercised
//	reason    the number of runs by verdict
//	runs      in the order in which they started:
//	  scenario, description, subject, provider, seed
//	  controllers      the names of the controllers under test; omitted for the default
//	                   controllers
//	  directory        the run directory as passed to the report; empty if the campaign
//	                   deleted it because the run passed. Then versions, reproduce and
//	                   results are empty too
//	  size             the number of steps and faults in the scenario
//	  started          when the run was requested, RFC 3339; omitted if not known
//	  durationSeconds  from the first to the last record, with decimals
//	  stalledSeconds   how long gauntlet got no CPU time, plus how long the threads of the
//	                   replica that stalled longest waited for a CPU; omitted if that is 0
//	  versions         of all components, by name
//	  verdict, reason  of the run; its verdict is worse than the verdicts of all results if
//	                   too little happened in the run or if the run was aborted
//	  failedChecks     the IDs of the checks with the verdict fail; omitted if there are none
//	  reproduce        the command line that repeats the run
//	  faults           the name, injected and fired counts of each fault; omitted if there
//	                   are none
//	  unusedPermissions  the RBAC permissions of the subject that the run did not need, such
//	                   as "list pods"; only for subject files with role bindings
//	  results          of the checks, in the order of gauntlet list checks:
//	    check, guarantee, contract
//	    scope          general or contract; omitted if it is not known
//	    verdict, reason
//	    exercised      the number of times that something could have broken the guarantee
//	    violations     the number of violations; omitted if there are none
//	    evidence       of the first violations:
//	      summary, expected
//	      object       resource, namespace, name, uid, version
//	      at           nanoseconds since the start of the history
//	      records      the lines of history.jsonl that show the violation
//	      cached       the pods of the owner that were in the subject's cache
//	      stalled      for how many nanoseconds the subject or gauntlet got no CPU time shortly
//	                   before the violation
//	      knownIssue   the slug of the known upstream issue that the violation matches
//
// Until the next release, JSON also writes three old names of fields, from schema 1. The fields
// reproduce, exercised and contract have the old names "again", "tested" and "clause". The slug
// knownIssue has replaced the number weakness of schema 1, and the verdict not-exercised has
// replaced idle. ReadDirectory reads schema 1 and schema 2.
//
// # compare.json
//
// ComparedJSON writes one object:
//
//	schema       the version of this format, 3, with the same rule as verdicts.json
//	verdict      the worst of all comparisons: fail if a difference is undeclared or both
//	             subjects violate a guarantee, unknown if nothing was compared, otherwise pass
//	comparisons  one for each scenario:
//	  scenario, subject, base, verdict
//	  pairs      in the order in which they started:
//	    seed
//	    subject, base  each with the directory, verdict and reason of its run
//	    partial        true if a known upstream issue aborted one run before the other; the
//	                   later steps are then not compared
//	    differences    worst first:
//	      aspect       workload, verdict, end state or milestone
//	      object       a step, a check, or an object by a name that is the same in every run
//	      what         the step's text, the path of a field, or the kind of a milestone
//	      subject, base    the values in the two runs; omitted if the run has no value
//	      classification   undeclared, both wrong, declared, not compared or accepted
//	      reason           why the difference is allowed, or which guarantee both violate
//	  costs      the metrics of the pairs in which both runs are complete and completed the
//	             same steps; without metrics that have no value in one of these runs, and
//	             without metrics that are 0 in all of these runs:
//	    metric, unit   s, KiB, MiB, or no unit for a count
//	    subject, base  one value for each of these pairs, in order
//	    ratio, low, high   the median, the lowest and the highest of the pairs' ratios;
//	                   omitted if the base is 0
//	    finding, p     less, same or more, and the p-value of the test
//
// Until the next release, ComparedJSON also writes two old names of fields, from schema 2. The
// fields classification and partial have the old names "standing" and "partly".
package reports
