package watches

import (
	"context"
	"fmt"
	"sync"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/faults/proxy"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// Bookmarks is the fault type bookmark-loss.
var Bookmarks = faults.Type{
	Name:        "bookmark-loss",
	Description: "The subject's watches of one resource bring no bookmarks, so that a quiet watch falls behind.",
	Healing:     "Bookmarks come again; those that were lost stay lost.",
	Providers:   faults.Providers,
	Params: []faults.Param{
		resourceParam("The resource whose bookmarks are lost, with its group. The bookmark that ends initial events is not."),
	},
	New:    NewBookmarks,
	Sample: sampleBookmarks,
}

// BookmarksParams are the parameters of bookmark-loss; [Bookmarks] documents them.
type BookmarksParams struct {
	Resource string `yaml:"resource"`
}

// NewBookmarks returns the fault that params describe.
func NewBookmarks(params faults.Params) (faults.Fault, error) {
	var p BookmarksParams
	if err := params.Decode(&p); err != nil {
		return nil, err
	}
	if err := faults.OneOf(params, "resource", p.Resource, faults.Resources); err != nil {
		return nil, err
	}
	return &bookmarks{resource: p.Resource}, nil
}

// bookmarks is a bookmark-loss fault in force.
type bookmarks struct {
	resource string
	env      *faults.Env
	remove   func()

	mu   sync.Mutex
	lost int
}

func (b *bookmarks) Inject(_ context.Context, env *faults.Env) error {
	b.env = env
	b.remove = env.Proxy.OnWatchEvent(b.match)
	return nil
}

func (b *bookmarks) Heal(context.Context) error {
	if b.remove != nil {
		b.remove()
	}
	return nil
}

func (b *bookmarks) Summary() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return fmt.Sprintf("lost %d bookmarks", b.lost)
}

func (b *bookmarks) match(stream *history.Request, event *history.Delivery) *proxy.WatchEffect {
	if stream.Resource != b.resource || event.Type != history.Bookmark || event.InitialEventsEnd {
		return nil
	}
	b.mu.Lock()
	b.lost++
	b.mu.Unlock()
	ref := event.Object.Ref // a copy, because the proxy owns the event
	b.env.Report.Fired(stream.ID, &ref, "bookmark lost")
	return &proxy.WatchEffect{Drop: true}
}
