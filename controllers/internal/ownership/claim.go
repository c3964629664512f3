// Package ownership decides which children belong to an owner. It keeps children that
// the owner controls and selects, adopts matching orphans, and releases children that
// the selector no longer matches. The package is generic over the child, so that the
// same rules apply to pods and ReplicaSets.
//
// The caller chooses the candidates. The package never changes a child that another
// controller controls.
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

// Decision says whether an owner ignores, keeps, adopts or releases a candidate.
type Decision int

// Decisions that Decide returns.
const (
	// Ignore: another controller controls the child, or the owner must not change it.
	Ignore Decision = iota
	// Keep: the owner controls the child and selects it; there is nothing to write.
	Keep
	// Adopt: the child is an orphan that the selector matches.
	Adopt
	// Release: the owner controls the child, but the selector no longer matches it.
	Release
)

// String returns the name of the decision.
func (d Decision) String() string {
	return [...]string{"Ignore", "Keep", "Adopt", "Release"}[d]
}

// Decide returns how owner treats child. A terminating owner keeps its children, but
// neither adopts nor releases any. A terminating orphan is ignored.
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

// Claimer adopts and releases children for one owner during one sync. Make a new
// Claimer for each sync, because it reads the owner from the API server at most once.
type Claimer[Child metav1.Object] struct {
	// Owner is the owner as read from the informer cache.
	Owner metav1.Object
	// GVK is the owner's group, version and kind, as used in controllerRefs.
	GVK schema.GroupVersionKind
	// Selector is the owner's label selector.
	Selector labels.Selector
	// Live reads the owner from the API server, bypassing the cache. Claim calls it
	// before the first adoption: the cache may be stale, and a deleted owner must not
	// adopt children that the garbage collector has just orphaned.
	Live func(ctx context.Context) (metav1.Object, error)
	// Patch sends a strategic merge patch for a child.
	Patch func(ctx context.Context, child Child, data []byte) error
}

// Claim adopts and releases candidates and returns the children that belong to the
// owner. If one candidate fails, Claim still tries the others and returns all errors
// joined. If the error is not nil, the caller must not use the returned children.
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

func (c Claimer[Child]) release(ctx context.Context, child Child) error {
	err := c.patch(ctx, child, []any{map[string]any{"$patch": "delete", "uid": c.Owner.GetUID()}})
	// NotFound: the child is gone. Invalid: the child now has another UID or no owner
	// references.
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsInvalid(err) {
		return nil
	}
	return fmt.Errorf("releasing %s from %s: %w", describeChild(child), c.describe(), err)
}

// patch sends the child's UID with the patch, so that it cannot change another child
// with the same name.
func (c Claimer[Child]) patch(ctx context.Context, child Child, ownerReferences []any) error {
	data, err := json.Marshal(map[string]any{
		"metadata": struct {
			UID             types.UID `json:"uid"`
			OwnerReferences []any     `json:"ownerReferences"`
		}{child.GetUID(), ownerReferences},
	})
	if err != nil {
		return fmt.Errorf("encoding the ownerReferences patch: %w", err)
	}
	return c.Patch(ctx, child, data)
}

func (c Claimer[Child]) describe() string {
	return fmt.Sprintf("%s %s/%s", c.GVK.Kind, c.Owner.GetNamespace(), c.Owner.GetName())
}

func describeChild(child metav1.Object) string {
	return fmt.Sprintf("%s/%s (UID %s)", child.GetNamespace(), child.GetName(), child.GetUID())
}
