// Package reports renders verdicts: for a person at a terminal (Terminal), for
// programs (JSON), for CI systems (JUnit), for the summary and the annotations of a
// CI job (Markdown, Annotations) and as a page to keep (HTML). Whatever went wrong comes first.
//
// Two subjects side by side are written by Compared, for a terminal, and by
// WriteComparisons, for all else.
//
// The package decides nothing: verdicts and reasons are those of package check
// and of the run. It needs no cluster, so a report can be made again from a run
// directory at any time.
//
// The page is one file that loads nothing: its style, its script and the library
// that draws its charts (assets/) are in it, and so is what package timeline made
// of the history, as JSON (drawing.go). Its tests open it in Chromium, if there
// is one.
//
// # verdicts.json
//
// JSON writes one object:
//
//	schema    the version of this format, 1; it is raised when a field changes
//	          its meaning or goes, not when one is added
//	verdict   the worst verdict of all runs: fail, unknown, known-upstream, pass or not-exercised
//	reason    one sentence that sums up the runs
//	runs      in the order in which they were made:
//	  scenario, description, subject, provider, seed
//	  directory        of the run, as it was given to the report; empty if it was not
//	                   kept, as those are not that pass in a sweep or a night: then
//	                   versions, again and results are empty too
//	  size             how many steps and faults the scenario has
//	  started          when the run was asked for, RFC 3339; left out if not known
//	  durationSeconds  from the first to the last record, a fraction
//	  versions         of what took part, by name
//	  verdict, reason  of the run; worse than its results when too little
//	                   happened, or when the run broke off
//	  again            the command line that runs it again
//	  results          in the order of the table of checks:
//	    check, guarantee, clause
//	    verdict, reason
//	    tested         how often the guarantee was put to the test
//	    violations     how often it was broken
//	    evidence       of the first violations:
//	      summary, expected
//	      object       resource, namespace, name, uid, version
//	      at           nanoseconds since the start of the history
//	      records      the lines of history.jsonl that show it
//	      weakness     the number of upstream's known weakness that it looks like
//
// # compare.json
//
// ComparedJSON writes one object:
//
//	schema       the version of this format, 2, raised as that of verdicts.json; in 1 the
//	             costs were those of all pairs
//	verdict      the worst of all comparisons: fail where a difference is undeclared or
//	             both are wrong, unknown where nothing was compared, otherwise pass
//	comparisons  one of each scenario:
//	  scenario, subject, base, verdict
//	  pairs      in the order in which they were made:
//	    seed
//	    subject, base  each with the directory of its run, and the run's verdict and reason
//	    partly         whether one run was broken off before the other, by a weakness that
//	                   upstream is known for, so that the rest is not compared
//	    differences    the worst first:
//	      aspect       workload, verdict, end state or milestone
//	      object       a step, a check, or an object by a name that is the same in every run
//	      what         the step in words, or which field or kind of milestone
//	      subject, base    left out where that side has none
//	      standing     undeclared, both wrong, declared, not compared or accepted
//	      reason       why it may be, or what both are wrong in
//	  costs      what all pairs have a value of whose runs did the same steps:
//	    metric, unit   s, KiB, MiB, or no unit for a count
//	    subject, base  the values, in the order of those pairs
//	    ratio, low, high   the median, the lowest and the highest of the pairs' ratios;
//	                   left out where the base has none of it
//	    finding, p     less, same or more, and the p-value of the test
package reports
