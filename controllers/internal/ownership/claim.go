// Package ownership settles which children an owner has: it keeps those that it
// controls and selects, adopts matching orphans, and releases those that its
// selector no longer matches. It is generic over the child, so that pods and
// ReplicaSets are claimed by the same rules.
//
// It does not choose the candidates, and it never touches a child that another
// controller owns.
package ownership

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Decision is what an owner does about one candidate.
type Decision int

// The decisions of Decide.
const (
	// Ignore: the candidate is somebody else's, or not wanted.
	Ignore Decision = iota
	// Keep: controlled and selected; nothing to write.
	Keep
	// Adopt: an orphan that the selector matches.
	Adopt
	// Release: controlled, but no longer selected.
	Release
)

// String names the decision.
func (d Decision) String() string {
	return [...]string{"Ignore", "Keep", "Adopt", "Release"}[d]
}

// Decide says what owner does about child. A terminating owner keeps what it
// has but neither adopts nor releases; a terminating orphan is left alone.
func Decide(owner, child metav1.Object, selector labels.Selector) Decision {
	matches := selector.Matches(labels.Set(child.GetLabels()))
	terminating := owner.GetDeletionTimestamp() != nil
	if ref := metav1.GetControllerOfNoCopy(child); ref != nil {
		switch {
		case ref.UID != owner.GetUID():
			return Ignore
		case matches:
			return Keep
		case terminating:
			return Ignore
		default:
			return Release
		}
	}
	if !matches || terminating || child.GetDeletionTimestamp() != nil || child.GetNamespace() != owner.GetNamespace() {
		return Ignore
	}
	return Adopt
}

// Claimer carries decisions out for one owner during one sync. Make a new one
// for each sync: the live check before adoption is made at most once.
type Claimer[Child metav1.Object] struct {
	// Owner is the owner as the cache shows it.
	Owner metav1.Object
	// GVK is the owner's kind, as children name it in their controllerRef.
	GVK schema.GroupVersionKind
	// Selector is the owner's label selector.
	Selector labels.Selector
	// Live reads the owner from the API server, past every cache. An owner that
	// was deleted while the cache lags must not take back what the garbage
	// collector has just orphaned.
	Live func(ctx context.Context) (metav1.Object, error)
	// Patch sends a strategic merge patch to a child.
	Patch func(ctx context.Context, child Child, data []byte) error
}

// Claim returns the children that belong to the owner, adopting and releasing
// on the way. A failure does not stop it from trying the other candidates; it
// returns all failures joined, and then its first result must not be acted on.
func (c Claimer[Child]) Claim(ctx context.Context, candidates []Child) ([]Child, error) {
	claimed := make([]Child, 0, len(candidates))
	var failures []error
	var checked bool
	var checkErr error
	for _, child := range candidates {
		switch Decide(c.Owner, child, c.Selector) {
		case Ignore:
		case Keep:
			claimed = append(claimed, child)
		case Release:
			if err := c.release(ctx, child); err != nil {
				failures = append(failures, err)
			}
		case Adopt:
			if !checked {
				checked, checkErr = true, c.checkLive(ctx)
				if checkErr != nil {
					failures = append(failures, checkErr)
				}
			}
			if checkErr != nil {
				continue
			}
			adopted, err := c.adopt(ctx, child)
			if err != nil {
				failures = append(failures, err)
			} else if adopted {
				claimed = append(claimed, child)
			}
		}
	}
	return claimed, errors.Join(failures...)
}

func (c Claimer[Child]) checkLive(ctx context.Context) error {
	live, err := c.Live(ctx)
	if err != nil {
		return fmt.Errorf("re-reading %s before adoption: %w", c.describe(), err)
	}
	if live.GetUID() != c.Owner.GetUID() {
		return fmt.Errorf("%s has been replaced: it now has UID %s, not %s", c.describe(), live.GetUID(), c.Owner.GetUID())
	}
	if live.GetDeletionTimestamp() != nil {
		return fmt.Errorf("%s is being deleted since %s and adopts nothing", c.describe(), live.GetDeletionTimestamp())
	}
	return nil
}

func (c Claimer[Child]) adopt(ctx context.Context, child Child) (bool, error) {
	err := c.patch(ctx, child, []any{*metav1.NewControllerRef(c.Owner, c.GVK)})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("adopting %s for %s: %w", describeChild(child), c.describe(), err)
	}
	return true, nil
}

func (c Claimer[Child]) release(ctx context.Context, child Child) error {
	err := c.patch(ctx, child, []any{map[string]any{"$patch": "delete", "uid": c.Owner.GetUID()}})
	// Not found: it is gone. Invalid: it has another UID, or no owners, by now.
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsInvalid(err) {
		return nil
	}
	return fmt.Errorf("releasing %s from %s: %w", describeChild(child), c.describe(), err)
}

// patch carries the child's UID, so that it cannot hit a namesake.
func (c Claimer[Child]) patch(ctx context.Context, child Child, ownerReferences []any) error {
	data, err := json.Marshal(map[string]any{
		"metadata": struct {
			UID             types.UID `json:"uid"`
			OwnerReferences []any     `json:"ownerReferences"`
		}{child.GetUID(), ownerReferences},
	})
	if err != nil {
		return fmt.Errorf("encoding an ownership patch: %w", err)
	}
	return c.Patch(ctx, child, data)
}

func (c Claimer[Child]) describe() string {
	return fmt.Sprintf("%s %s/%s", c.GVK.Kind, c.Owner.GetNamespace(), c.Owner.GetName())
}

func describeChild(child metav1.Object) string {
	return fmt.Sprintf("%s/%s (UID %s)", child.GetNamespace(), child.GetName(), child.GetUID())
}
