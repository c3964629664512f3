package compare

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// endState returns the fields of the objects that exist at the end of the run.
//
// The first key is the stable name of an object, which is equal in all runs. The second key is the
// path of a field. Pod names are random, so endState only counts the pods by owner and by state,
// such as ready.
func (o *observer) endState() (map[string]map[string]string, error) {
	state := map[string]map[string]string{}
	counts := map[string]map[string]int{} // number of pods, by key (see endStateName) and pod state
	for _, object := range o.live {
		if object.Resource == pods {
			name := o.names.endStateName(object)
			if counts[name] == nil {
				counts[name] = map[string]int{}
			}
			podState, err := o.podStateOf(object)
			if err != nil {
				return nil, err
			}
			counts[name][podState]++
			continue
		}
		flat, err := o.flatten(object)
		if err != nil {
			return nil, err
		}
		state[o.names.stableName(object)] = flat
	}
	for name, pods := range counts {
		state[name] = map[string]string{}
		for podState, n := range pods {
			state[name][podState] = strconv.Itoa(n)
		}
	}
	return state, nil
}

// podsOf is the prefix of the keys for pods in Side.End, the objects at the end of a run. Such a
// key stands for all pods of one owner, for example "pods of replicationcontrollers web".
const podsOf = "pods of "

// These are the states of a pod for which [observer.endState] counts the pods of each owner.
const (
	podReady       = "ready"
	podNotReady    = "not ready"
	podEnded       = "failed or succeeded" // the phase is Failed or Succeeded
	podTerminating = "terminating"         // the pod has a deletionTimestamp, in any phase
)

// podStateOf returns the state of a pod, such as podReady. It returns an error if the pod cannot
// be decoded.
func (o *observer) podStateOf(object *history.Object) (string, error) {
	pod, err := o.decoder.Pod(object)
	switch {
	case err != nil:
		return "", err
	case pod.Terminating:
		return podTerminating, nil
	case pod.Ended:
		return podEnded, nil
	case pod.Ready:
		return podReady, nil
	}
	return podNotReady, nil
}

// oneLine formats the fields of a list item as one line, sorted by path, such as "name: http; port:
// 80". Equal items have equal lines, so that [flattener.list] can count them.
func oneLine(flat map[string]string) string {
	var parts []string
	for _, path := range slices.Sorted(maps.Keys(flat)) {
		parts = append(parts, path+": "+flat[path])
	}
	return strings.Join(parts, "; ")
}

// omitted has the paths of fields that are not compared: hash labels, generations and times. These
// fields differ between runs even if the controllers behave alike.
var omitted = map[string]bool{
	"status.observedGeneration":                                             true,
	"metadata.labels." + objects.PodTemplateHashLabel:                       true,
	"spec.selector.matchLabels." + objects.PodTemplateHashLabel:             true,
	"spec.template.metadata.labels." + objects.PodTemplateHashLabel:         true,
	"metadata.annotations.endpoints.kubernetes.io/last-change-trigger-time": true,
}

// isVolumeBinding reports whether a field of an object says how a PersistentVolumeClaim is bound. The
// PersistentVolume controller writes such fields at any time, and gives a new volume a random name.
func isVolumeBinding(o *history.Object, path, value string) bool {
	if o.Resource != "persistentvolumeclaims" {
		return false
	}
	return path == "spec.volumeName" && value == "pvc-"+string(o.UID) || bindingAnnotation.MatchString(path)
}

// bindingAnnotation matches the paths of the annotations of the PersistentVolume controller and the scheduler.
var bindingAnnotation = regexp.MustCompile(`^metadata\.annotations\.(pv|volume|volume\.beta)\.kubernetes\.io/(bind-completed|bound-by-controller|storage-provisioner|selected-node)$`)

// sizeAnnotations has the annotations desired-replicas and max-replicas. The Deployment controller
// writes them to a ReplicaSet when it scales the ReplicaSet. They contain the Deployment's
// replicas, and replicas + maxSurge. In a ReplicaSet with 0 replicas they may be old, and are not
// compared.
var sizeAnnotations = map[string]bool{
	objects.DesiredReplicasAnnotation: true, objects.MaxReplicasAnnotation: true,
}

// flatten returns the fields of an object by path, so that an object can be compared field by
// field. A path is, for example, "status.replicas".
func (o *observer) flatten(object *history.Object) (map[string]string, error) {
	flat := flattener{names: o.names, flat: map[string]string{}}
	if len(object.Body) > 0 {
		var body map[string]any
		if err := json.Unmarshal(object.Body, &body); err != nil {
			return nil, fmt.Errorf("%s: %w", object.Ref, err)
		}
		if status, ok := body["status"].(map[string]any); ok && status["observedGeneration"] != nil {
			flat.flat["status.observedGeneration is current"] = fmt.Sprint(status["observedGeneration"] == float64(object.Generation))
		}
		flat.value("", body)
	}
	for key, value := range object.Labels {
		flat.text("metadata.labels."+key, value)
	}
	for key, value := range object.Annotations {
		if sizeAnnotations[key] && flat.flat["spec.replicas"] == "0" {
			continue // the ReplicaSet is from an earlier rollout, and its annotations may be old
		}
		flat.text("metadata.annotations."+key, value)
	}
	for _, owner := range object.Owners {
		flat.text("metadata.ownerReferences["+owner.Kind+"]", fmt.Sprintf("%s controller=%t", owner.Name, owner.Controller))
	}
	if object.Terminating() {
		flat.text("metadata.deletionTimestamp", "set")
	}
	for _, finalizer := range object.Finalizers {
		flat.text("metadata.finalizers["+finalizer+"]", "set")
	}
	maps.DeleteFunc(flat.flat, func(path, value string) bool { return isVolumeBinding(object, path, value) })
	return flat.flat, nil
}

// flattener converts a tree of JSON values to a map from paths to texts. For example,
// "spec.replicas" has the text "3".
type flattener struct {
	names *names            // replaces real names of objects by stable names
	flat  map[string]string // the fields of the object that were added so far, by path
}

// text adds a text at a path to the result, unless this path is omitted from comparisons. It
// replaces real names in the text by stable names, which are equal in every run.
func (f *flattener) text(path, value string) {
	if !omitted[path] {
		f.flat[path] = f.names.normalize(value)
	}
}

// value adds a JSON value at a path, with all nested fields and items. It skips uid,
// resourceVersion and nodeName, which differ in every run.
func (f *flattener) value(path string, value any) {
	if omitted[path] {
		return
	}
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			if key == "uid" || key == "resourceVersion" || key == "nodeName" {
				continue
			}
			f.value(strings.TrimPrefix(path+"."+key, "."), inner)
		}
	case []any:
		f.list(path, value)
	case string:
		f.text(path, value)
	case float64:
		f.text(path, strconv.FormatFloat(value, 'f', -1, 64))
	default:
		f.text(path, fmt.Sprint(value))
	}
}

// list adds the items of a JSON list at a path.
//
// Some items, such as conditions, have a field named "type". The path of such an item ends with the
// value of this field. An example is "status.conditions[Available]". For other items, list counts
// how often an equal item occurs.
func (f *flattener) list(path string, elements []any) {
	counts := map[string]int{}
	for _, element := range elements {
		if fields, ok := element.(map[string]any); ok {
			if key, ok := fields["type"].(string); ok {
				f.value(path+"["+key+"]", element)
				continue
			}
		}
		inner := flattener{names: f.names, flat: map[string]string{}}
		inner.value("", element)
		counts[oneLine(inner.flat)]++
	}
	for text, n := range counts {
		f.flat[path+"["+text+"]"] = fmt.Sprintf("%d times", n)
	}
}
