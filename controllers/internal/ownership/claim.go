// Package ownership decides which children an owner keeps, adopts and releases. An owner is, for
// example, a ReplicaSet, and its children are pods. The owner keeps the children that it controls
// and that its selector matches. It adopts orphans that its selector matches. It releases children
// that its selector no longer matches.
//
// The caller selects the objects that may be children: the candidates. The package never writes a
// candidate that another owner controls.
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

// Decision says what an owner must do with a candidate: ignore, keep, adopt or release it.
type Decision int

// These are the decisions about a candidate, such as a pod, that the function Decide returns to an
// owner.
const (
	// Ignore means that the owner must not write the candidate. For example, another owner
	// controls the candidate, or this owner is terminating.
	Ignore Decision = iota
	// Keep means that the owner controls the candidate and its selector matches. No write is
	// necessary.
	Keep
	// Adopt means that the candidate is an orphan, and that the owner's selector matches it.
	Adopt
	// Release means that the owner controls the candidate, but its selector no longer matches.
	Release
)

// String returns the name of the decision, such as "Adopt".
func (d Decision) String() string {
	return [...]string{"Ignore", "Keep", "Adopt", "Release"}[d]
}

// Decide returns what the owner must do with the argument child, a candidate. A terminating owner
// neither adopts nor releases: it ignores children that its selector does not match. A terminating
// orphan is always ignored.
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

// Claimer adopts and releases children in one sync of an owner. Use a new Claimer for each sync,
// with the version of the owner that the sync has read.
type Claimer[Child metav1.Object] struct {
	// Owner is the owner from the informer cache.
	Owner metav1.Object
	// GVK is the group, version and kind of the owner. An adopted child gets a controllerRef
	// with these values.
	GVK schema.GroupVersionKind
	// Selector is the owner's label selector.
	Selector labels.Selector
	// Live reads the owner from the API server. Claim calls it once, before the first adoption,
	// because the cache may be stale. A deleted owner must not adopt children that the garbage
	// collector has orphaned.
	Live func(ctx context.Context) (metav1.Object, error)
	// Patch sends the strategic merge patch in data to the API server, for one child.
	Patch func(ctx context.Context, child Child, data []byte) error
}

// Claim adopts and releases candidates, and returns the children that the owner then controls.
// If the write of one candidate fails, Claim continues with the others. It returns all errors
// joined. After an error, do not use the returned children.
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

// checkLive returns an error if the API server says that the owner is deleted, recreated or
// terminating. Such an owner must not adopt orphans.
func (c Claimer[Child]) checkLive(ctx context.Context) error {
	live, err := c.Live(ctx)
	if err != nil {
		return fmt.Errorf("reading the owner %s from the API server before adopting orphans: %w", c.describe(), err)
	}
	if live.GetUID() != c.Owner.GetUID() {
		return fmt.Errorf("%s was recreated: found UID %s on the API server, expected UID %s as in the informer cache", c.describe(), live.GetUID(), c.Owner.GetUID())
	}
	if live.GetDeletionTimestamp() != nil {
		return fmt.Errorf("%s has been terminating since %s and must not adopt orphans", c.describe(), live.GetDeletionTimestamp())
	}
	return nil
}

// adopt makes the owner the controller of the child. It returns false without an error if the
// child no longer exists.
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

// release removes the owner from the child's owner references. It returns nil if the child no
// longer exists.
func (c Claimer[Child]) release(ctx context.Context, child Child) error {
	err := c.patch(ctx, child, []any{map[string]any{"$patch": "delete", "uid": c.Owner.GetUID()}})
	// NotFound means that the child no longer exists. Invalid means that the child has another
	// UID or no owner references.
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsInvalid(err) {
		return nil
	}
	return fmt.Errorf("releasing %s from %s: %w", describeChild(child), c.describe(), err)
}

// patch sends a patch of the child's owner references. The patch contains the child's UID, so
// that it cannot change another child with the same name.
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

// describe returns the kind, namespace and name of the owner, such as "ReplicaSet default/web".
func (c Claimer[Child]) describe() string {
	return fmt.Sprintf("%s %s/%s", c.GVK.Kind, c.Owner.GetNamespace(), c.Owner.GetName())
}

// describeChild returns the namespace, name and UID of a child, for error messages.
func describeChild(child metav1.Object) string {
	return fmt.Sprintf("%s/%s (UID %s)", child.GetNamespace(), child.GetName(), child.GetUID())
}
