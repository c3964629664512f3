package library

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/kube-gauntlet/gauntlet/harness/mutant"
	"github.com/kube-gauntlet/gauntlet/harness/run"
	scenarios "github.com/kube-gauntlet/gauntlet/harness/scenario/library"
)

// ChooseTiers returns the scenarios that the tiers quick and default should have. It chooses by
// the results in a matrix, which says which scenarios detect a mutant.
func ChooseTiers(matrix *mutant.Matrix) mutant.Tiers {
	faults := map[string][]string{}
	for _, s := range scenarios.All() {
		for _, fault := range s.Faults {
			faults[s.Name] = append(faults[s.Name], fault.Name)
		}
	}
	return mutant.ChooseTiers(matrix.Candidates(All(), faults))
}

// TiersFile returns the content that the scenario library's file tiers.txt should have. Each line
// has a tier, such as quick, and a scenario.
func TiersFile(tiers mutant.Tiers) string {
	var b strings.Builder
	for i, choice := range tiers.Default {
		fmt.Fprintf(&b, "%s %s\n", tierAt(tiers, i), choice.Name)
	}
	return b.String()
}

// WriteTiers writes a table of the scenarios that [mutant.ChooseTiers] proposes for the tiers quick
// and default. Below the table, it writes which share of the mutants each tier detects as it is
// now, before the proposal is applied.
func WriteTiers(out io.Writer, tiers mutant.Tiers, matrix *mutant.Matrix) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "TIER\tSCENARIO\tSECONDS\tNEW\tEXAMPLES")
	for i, choice := range tiers.Default {
		fmt.Fprintf(table, "%s\t%s\t%.1f\t%d\t%s\n", tierAt(tiers, i), choice.Name, choice.Duration.Seconds(), len(choice.New),
			strings.Join(choice.New[:min(2, len(choice.New))], ", "))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	for _, tier := range Rates(matrix) {
		fmt.Fprintf(out, "%s catches %s\n", tier.Name, tier.Rate)
	}
	return nil
}

// tierAt returns the tier (quick or default) of the chosen scenario with index i in tiers.Default.
func tierAt(tiers mutant.Tiers, i int) scenarios.Tier {
	if i < len(tiers.Quick) {
		return scenarios.Quick
	}
	return scenarios.Default
}

// Scenarios returns the names of a tier's scenarios that can run on the embedded control plane.
// Tiers are measured only there.
func Scenarios(tier scenarios.Tier) []string {
	var names []string
	for _, s := range scenarios.InTier(tier) {
		if run.Supported(s, "embedded") == nil {
			names = append(names, s.Name)
		}
	}
	return names
}

// Rates returns for each tier which share of the mutants its scenarios detect. The results come
// from the matrix.
func Rates(matrix *mutant.Matrix) []mutant.Column {
	var columns []mutant.Column
	for _, tier := range scenarios.Tiers {
		names := Scenarios(tier)
		columns = append(columns, mutant.Column{
			Name: string(tier), Rate: matrix.Rate(All(), names),
			Find: func(m *mutant.Mutant) mutant.Finding { return matrix.Find(m, names) },
		})
	}
	return columns
}
