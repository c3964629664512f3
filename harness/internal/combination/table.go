package combination

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// Table counts, for each combination, in how many scenarios it occurs. The zero value is an
// empty table.
type Table struct {
	scenarios int                 // number of scenarios that were added
	counts    map[Combination]int // number of scenarios in which each combination occurs
}

// Add adds one scenario to the table: it counts the combinations that occur in the scenario.
func (t *Table) Add(s *scenario.Scenario) {
	if t.counts == nil {
		t.counts = map[Combination]int{}
	}
	t.scenarios++
	for _, c := range Of(s) {
		t.counts[c]++
	}
}

// Missing returns the combinations that occur in no scenario, in the order in which WriteText
// prints them.
func (t *Table) Missing() []Combination {
	var missing []Combination
	for _, c := range all() {
		if t.counts[c] == 0 {
			missing = append(missing, c)
		}
	}
	return missing
}

// WriteText prints a table with the number of scenarios in which each combination occurs. A dot
// means 0.
func (t *Table) WriteText(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	var last Combination
	for _, c := range all() {
		if (c.Object == Service) != (last.Object == Service) || last.Object == "" {
			fmt.Fprintf(table, "\n%s\n", heading(c.Object))
		}
		if c.Object != last.Object || c.Pods != last.Pods || c.Change != last.Change {
			fmt.Fprintf(table, "\n%s\t%s\t%s", c.Object, c.Pods, c.Change)
		}
		count := "."
		if n := t.counts[c]; n > 0 {
			count = strconv.Itoa(n)
		}
		fmt.Fprintf(table, "\t%s", count)
		last = c
	}
	fmt.Fprintln(table)
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "\nscenarios: %d, combinations: %d of %d\n", t.scenarios, len(all())-len(t.Missing()), len(all()))
	return err
}

// heading returns the column titles of the table for an object. Deployments and Services have
// different columns.
func heading(object string) string {
	first, watches := "STRATEGY", deploymentWatches
	if object == Service {
		first, watches = "OBJECT", serviceWatches
	}
	columns := []string{first, "PODS", "CHANGE"}
	for _, watch := range watches {
		columns = append(columns, strings.ToUpper(string(watch)))
	}
	return strings.Join(columns, "\t")
}
