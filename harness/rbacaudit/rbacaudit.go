// Package rights compares what a subject may do with what it asked for in a run:
// whether its roles grant enough, and not more than it uses. It reads histories
// and roles, and knows no cluster.
package rbacaudit

import (
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// Permission is a verb and what it may be applied to, such as
// "update deployments.apps/status". Namespaces and names of objects are not part
// of it.
type Permission string

func permission(verb, resource, group, subresource string) Permission {
	words := verb + " " + resource
	if group != "" {
		words += "." + group
	}
	if subresource != "" {
		words += "/" + subresource
	}
	return Permission(words)
}

// Granted returns every right that rules grant, sorted, each once. Rules must
// name what they grant: "*" is a right of its own, which nobody asks for.
func Granted(rules ...rbacv1.PolicyRule) []Permission {
	var all []Permission
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				resource, subresource, _ := strings.Cut(resource, "/")
				for _, verb := range rule.Verbs {
					all = append(all, permission(verb, resource, group, subresource))
				}
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Requested is what a subject asked for in a run.
type Requested struct {
	// Permissions are those that its requests needed, sorted, each once.
	Permissions []Permission `json:"rights"`
	// Refused are the requests that the API server, not a fault, refused for want
	// of a right, in words. One that has just started refuses whatever is asked,
	// before it has read its roles. So what is asked of anything that is granted
	// later is left out, be it by another verb: a client lists, is refused, and
	// watches then. That no verb is missing is seen by Rights.
	Refused []string `json:"refused,omitempty"`
}

// RequestedIn returns what was asked for in a history. Its error is the history's.
func RequestedIn(records iter.Seq2[*history.Record, error]) (Requested, error) {
	var asked Requested
	requests := map[uint64]*history.Request{}
	var refusals []*history.Request // of what was not granted since
	for record, err := range records {
		if err != nil {
			return Requested{}, err
		}
		if r := record.Request; r != nil && r.Resource != "" {
			requests[r.ID] = r
			asked.Permissions = append(asked.Permissions, needed(r))
		}
		if r := record.Response; r != nil && requests[r.ID] != nil {
			switch of := requests[r.ID]; {
			case refused(of, r):
				refusals = append(refusals, of)
			case granted(r):
				refusals = slices.DeleteFunc(refusals, func(refusal *history.Request) bool {
					return needed(refusal) == needed(of) || sameObject(refusal, of)
				})
			}
		}
	}
	for _, refusal := range refusals {
		asked.Refused = append(asked.Refused, describe(refusal))
	}
	slices.Sort(asked.Permissions)
	asked.Permissions = slices.Compact(asked.Permissions)
	return asked, nil
}

func needed(r *history.Request) Permission {
	resource, group, _ := strings.Cut(r.Resource, ".")
	return permission(r.Verb, resource, group, r.Subresource)
}

// refused: quotas and namespaces that are going answer 403 as well, to creates.
// A create says no name that a role could be limited to, so that one is missing a
// right only where Rights shows it.
func refused(request *history.Request, response *history.Response) bool {
	return response.ServerCode == http.StatusForbidden && request.Verb != "create"
}

// sameObject: or the same objects, where no name is given. Events are written once
// and not again when they are refused: one is as good as another.
func sameObject(a, b *history.Request) bool {
	if a.Resource != b.Resource || a.Subresource != b.Subresource {
		return false
	}
	resource, _, _ := strings.Cut(a.Resource, ".")
	return resource == "events" || a.Namespace == b.Namespace && a.Name == b.Name
}

// granted: whatever else came of the request, it got past the authorization.
func granted(response *history.Response) bool {
	switch response.ServerCode {
	case 0, http.StatusUnauthorized, http.StatusForbidden:
		return false
	}
	return response.ServerCode < http.StatusInternalServerError
}

func describe(r *history.Request) string {
	return fmt.Sprintf("%s: %s %s/%s", r.Subject, needed(r), r.Namespace, r.Name)
}

// Without returns the rights of some that are not among others.
func Without(some, others []Permission) []Permission {
	return slices.DeleteFunc(slices.Clone(some), func(r Permission) bool { return slices.Contains(others, r) })
}
