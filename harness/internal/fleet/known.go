package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"

	"github.com/kube-gauntlet/gauntlet/reports"
)

// Night says what one campaign of a series found. "gauntlet fleet nightly" writes it as JSON, for
// the program that opens issues.
type Night struct {
	// Series is the name that the campaigns of all nights share.
	Series string `json:"series"`
	// Campaign is the name of the campaign in the store.
	Campaign string `json:"campaign"`
	// Runs is the number of runs that have a verdict. Missing is the number of runs without a
	// verdict.
	Runs    int `json:"runs"`
	Missing int `json:"missing"`
	// Report is the path of the directory with the report and the runs that did not pass.
	Report string `json:"report"`
	// NewGroups has the failure groups that nobody has acknowledged in this series.
	NewGroups []reports.Group `json:"newGroups"`
}

// These patterns match the parts of a name in the store. Other texts could lead to another directory.
var (
	seriesPattern  = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]{0,199}$`)
	groupIDPattern = regexp.MustCompile(`^[0-9a-f]{1,64}$`)
)

// CheckSeries returns an error if no series of campaigns can have the name.
func CheckSeries(series string) error {
	if !seriesPattern.MatchString(series) {
		return fmt.Errorf("series: found %q; expected at most 200 letters, digits, \"-\", \"_\" and \".\", of which the first is a letter or digit", series)
	}
	return nil
}

// Validate returns an error if the store cannot contain the failure groups of the night.
func (n *Night) Validate() error {
	if err := CheckSeries(n.Series); err != nil {
		return err
	}
	known := map[string]bool{}
	for i := range n.NewGroups {
		id := n.NewGroups[i].ID
		switch {
		case !groupIDPattern.MatchString(id):
			return fmt.Errorf("newGroups[%d].id: found %q; expected 1 to 64 hexadecimal digits", i, id)
		case known[id]:
			return fmt.Errorf("newGroups[%d].id: found %q twice; expected each failure group once", i, id)
		}
		known[id] = true
	}
	return nil
}

// knownDir is the directory in the store with the acknowledged failure groups of all series. It is
// no valid name of a campaign.
const knownDir = ".known"

// knownName returns the name of a failure group's file in the store. The file exists after a user
// has acknowledged the group.
func knownName(series string, group *reports.Group) string {
	return path.Join(knownDir, series, group.ID+".json")
}

// NewGroups returns those of the given failure groups that nobody has acknowledged in a series.
func NewGroups(ctx context.Context, store Store, series string, groups []reports.Group) ([]reports.Group, error) {
	fresh := []reports.Group{}
	for i := range groups {
		_, err := store.Get(ctx, knownName(series, &groups[i]))
		if errors.Is(err, fs.ErrNotExist) {
			fresh = append(fresh, groups[i])
			continue
		}
		if err != nil {
			return nil, err
		}
	}
	return fresh, nil
}

// Acknowledge records the new failure groups of a valid night in the store. [NewGroups] then does
// not return them again.
func Acknowledge(ctx context.Context, store Store, night *Night) error {
	for i := range night.NewGroups {
		content, err := json.Marshal(night.NewGroups[i])
		if err != nil {
			return err
		}
		if err := store.Put(ctx, knownName(night.Series, &night.NewGroups[i]), append(content, '\n')); err != nil {
			return err
		}
	}
	return nil
}
