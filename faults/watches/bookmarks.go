package watches

import (
	"context"
	"sync"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/faults/interceptor"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// Bookmarks is the fault type bookmark-loss: the fault proxy drops the bookmark events of
// watches.
var Bookmarks = faults.Type{
	Name: "bookmark-loss",
	Description: "The fault proxy drops the bookmarks of the subject's watches of one resource. " +
		"A watch without other events then resumes from an old resourceVersion.",
	Healing: "The proxy delivers bookmarks again. The dropped bookmarks stay lost.",
	Params: []faults.Param{
		resourceParam("The resource of the watches, with its API group. The proxy does not drop the bookmark that ends the initial events of a streaming list."),
	},
	New:    NewBookmarks,
	Sample: sampleBookmarks,
}

// BookmarksParams contains the parameters that a scenario sets for a bookmark-loss fault. The
// Params field of [Bookmarks] documents each parameter.
type BookmarksParams struct {
	Resource string `yaml:"resource"`
}

// NewBookmarks returns a bookmark-loss fault with the given parameters, or an error if a
// parameter is invalid.
func NewBookmarks(params faults.Params) (faults.Fault, error) {
	var p BookmarksParams
	if err := params.Decode(&p); err != nil {
		return nil, err
	}
	if err := faults.Resource(params, p.Resource); err != nil {
		return nil, err
	}
	return &bookmarks{resource: p.Resource}, nil
}

// bookmarks is a fault of type bookmark-loss. It drops the bookmark events in watches of one
// resource.
type bookmarks struct {
	faults.Registration
	resource string
	env      *faults.Env

	mu      sync.Mutex
	dropped int // number of dropped bookmarks
}

func (b *bookmarks) Inject(_ context.Context, env *faults.Env) error {
	b.env = env
	b.Remove = env.Interceptor.OnWatchEvent(b.match)
	return nil
}

func (b *bookmarks) Summary() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return "dropped " + faults.Counted(b.dropped, "bookmark")
}

// match makes the fault proxy drop a bookmark event, and records that the fault fired. match
// returns nil for all other events, and for the bookmark that ends the initial events of a
// streaming list. The proxy then delivers the event.
func (b *bookmarks) match(stream *history.Request, event *history.Delivery) *interceptor.WatchEffect {
	if stream.Resource != b.resource || event.Type != history.Bookmark || event.InitialEventsEnd {
		return nil
	}
	b.mu.Lock()
	b.dropped++
	b.mu.Unlock()
	ref := event.Object.Ref // a copy: a fault must not keep a reference to the event
	b.env.Report.Fired(stream.ID, &ref, "dropped a bookmark")
	return &interceptor.WatchEffect{Drop: true}
}
