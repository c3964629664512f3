package coverage

import (
	"io"
	"slices"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// WriteText writes the table as text. The table has one row for each combination of fault, verb,
// resource and outcome, and one column for each phase. A dot means 0.
func (t *Table) WriteText(to io.Writer) error {
	out := table.NewWriter()
	out.SetStyle(table.StyleLight)
	header := table.Row{"fault", "verb", "resource", "outcome"}
	columns := []table.ColumnConfig{}
	for _, phase := range Phases {
		header = append(header, phase)
		columns = append(columns, table.ColumnConfig{Number: len(header), Align: text.AlignRight})
	}
	out.AppendHeader(header)
	out.SetColumnConfigs(columns)
	var last Cell
	var rows []table.Row
	for _, count := range t.Counts() { // cells that differ only in the phase are adjacent
		at := count.Cell
		if at.Phase = ""; len(rows) == 0 || at != last {
			last = at
			rows = append(rows, table.Row{at.Fault, at.Verb, at.Resource, at.Outcome, "·", "·", "·", "·"})
		}
		rows[len(rows)-1][4+slices.Index(Phases, count.Phase)] = count.Times
	}
	if len(rows) == 0 {
		_, err := io.WriteString(to, "no fault has fired\n")
		return err
	}
	out.AppendRows(rows)
	_, err := io.WriteString(to, out.Render()+"\n")
	return err
}
