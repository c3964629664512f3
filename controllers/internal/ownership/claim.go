// Package ownership decides which children an owner has. The owner keeps the children that it
// controls and its selector matches. It adopts orphans that its selector matches, and releases
// children that its selector no longer matches. The same rules apply to pods and to
// ReplicaSets.
//
// The caller selects the candidates. The package never writes a child that another owner
// controls.
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

// Decision says what an owner must do with a candidate.
type Decision int

// These are the decisions that Decide returns.
const (
	// Ignore means that the owner must not write the child. For example, another owner
	// controls the child, or the owner is terminating.
	Ignore Decision = iota
	// Keep means that the owner controls the child and its selector matches. No write is
	// necessary.
	Keep
	// Adopt means that the child is an orphan that the selector matches.
	Adopt
	// Release means that the owner controls the child, but its selector no longer matches.
	Release
)

// String returns the name of the decision.
func (d Decision) String() string {
	return [...]string{"Ignore", "Keep", "Adopt", "Release"}[d]
}

// Decide returns what the owner must do with the child. A terminating owner neither
// adopts nor releases: it ignores children that it no longer selects. A terminating orphan is
// ignored.
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

// Claimer adopts and releases children for one sync of an owner. Each sync needs a new
// Claimer, because a Claimer reads the owner from the API server at most once.
type Claimer[Child metav1.Object] struct {
	// Owner is the owner, as in the informer cache.
	Owner metav1.Object
	// GVK is the group, version and kind of the owner, for controllerRefs.
	GVK schema.GroupVersionKind
	// Selector is the owner's label selector.
	Selector labels.Selector
	// Live reads the owner from the API server. Claim calls it before the first adoption,
	// because the cache may be stale. A deleted owner must not adopt children that the garbage
	// collector has just orphaned.
	Live func(ctx context.Context) (metav1.Object, error)
	// Patch sends a strategic merge patch of a child to the API server.
	Patch func(ctx context.Context, child Child, data []byte) error
}

// Claim adopts and releases candidates, and returns the children of the owner. If the write of
// one candidate fails, Claim continues with the others and returns all errors joined. After an
// error, callers must not use the returned children.
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

// checkLive returns an error if the owner was deleted or recreated, or is terminating,
// according to the API server.
func (c Claimer[Child]) checkLive(ctx context.Context) error {
	live, err := c.Live(ctx)
	if err != nil {
		return fmt.Errorf("reading %s from the API server before adoption: %w", c.describe(), err)
	}
	if live.GetUID() != c.Owner.GetUID() {
		return fmt.Errorf("%s was recreated: found UID %s, expected %s", c.describe(), live.GetUID(), c.Owner.GetUID())
	}
	if live.GetDeletionTimestamp() != nil {
		return fmt.Errorf("%s is terminating since %s and must not adopt", c.describe(), live.GetDeletionTimestamp())
	}
	return nil
}

// adopt makes the owner the controller of the child. It returns false if the child no longer
// exists.
func (c Claimer[Child]) adopt(ctx context.Context, child Child) (bool, error) {
	err := c.patch(ctx, child, []any{*metav1.NewControllerRef(c.Owner, c.GVK)})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("adopting %s into %s: %w", describeChild(child), c.describe(), err)
	}
	return true, nil
}

// release removes the owner from the owner references of the child.
func (c Claimer[Child]) release(ctx context.Context, child Child) error {
	err := c.patch(ctx, child, []any{map[string]any{"$patch": "delete", "uid": c.Owner.GetUID()}})
	// NotFound means that the child no longer exists. Invalid means that the child has another
	// UID or no owner references.
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsInvalid(err) {
		return nil
	}
	return fmt.Errorf("releasing %s from %s: %w", describeChild(child), c.describe(), err)
}

// patch changes the owner references of a child. The patch contains the child's UID, so that
// it cannot change a new child with the same name.
func (c Claimer[Child]) patch(ctx context.Context, child Child, ownerReferences []any) error {
	data, err := json.Marshal(map[string]any{
		"metadata": struct {
			UID             types.UID `json:"uid"`
			OwnerReferences []any     `json:"ownerReferences"`
		}{child.GetUID(), ownerReferences},
	})
	if err != nil {
		return fmt.Errorf("encoding the patch of the ownerReferences of %s: %w", describeChild(child), err)
	}
	return c.Patch(ctx, child, data)
}

// describe returns the kind, namespace and name of the owner.
func (c Claimer[Child]) describe() string {
	return fmt.Sprintf("%s %s/%s", c.GVK.Kind, c.Owner.GetNamespace(), c.Owner.GetName())
}

// describeChild returns the namespace, name and UID of a child.
func describeChild(child metav1.Object) string {
	return fmt.Sprintf("%s/%s (UID %s)", child.GetNamespace(), child.GetName(), child.GetUID())
}
