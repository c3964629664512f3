package baseline

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// objectOf splits a key of [Facts] into the object, such as "services default/web", and the path of
// a field. The path is empty if the key is about the whole object.
func objectOf(key string) (object, field string) {
	parts := strings.SplitN(key, " ", 3)
	if len(parts) < 3 {
		return key, ""
	}
	return parts[0] + " " + parts[1], parts[2]
}

// mergeGenerated sets b.Generated, and merges the facts of each run: objects with generated names count
// together. The arguments have the facts about the end, and the effects, of each run.
//
// [history.Object.StableName] does not recognize all generated names. A name counts as generated if
// it occurs in exactly one run, and each run has an object with the same common part of the name.
func (b *Baseline) mergeGenerated(ends, effects []Facts) {
	if len(ends) < 2 {
		return
	}
	inRuns := map[string]int{} // by object: the number of runs that have it
	var runs []map[string]bool
	for i := range ends {
		all := ends[i].objects()
		maps.Copy(all, effects[i].objects())
		for object := range all {
			inRuns[object]++
		}
		runs = append(runs, all)
	}
	named := func(object string) bool { return inRuns[object] > 1 }
	b.Generated = generatedNames(runs, named)
	for i := range ends {
		ends[i], effects[i] = b.merge(ends[i], named), b.merge(effects[i], named)
	}
}

// generatedNames returns the common parts of the generated names, such as "secrets default/web-*".
// Each element of the argument runs has the objects of one run. The argument named reports whether
// an object does not have a generated name.
//
// Each name counts only for its longest common part that all runs have. Otherwise, an object of one run
// would count together with unlike objects.
func generatedNames(runs []map[string]bool, named func(object string) bool) []string {
	with := map[string]map[string]int{} // by common part: the objects with it, and the run of each
	for i, all := range runs {
		for object := range all {
			if named(object) {
				continue
			}
			for _, common := range commonParts(object) {
				if with[common] == nil {
					with[common] = map[string]int{}
				}
				with[common][object] = i
			}
		}
	}
	var found []string
	for _, common := range slices.SortedFunc(maps.Keys(with), func(a, b string) int { return cmp.Compare(len(b), len(a)) }) {
		in := map[int]bool{}
		for _, i := range with[common] {
			in[i] = true
		}
		if len(in) < len(runs) {
			continue
		}
		found = append(found, common)
		for object := range maps.Clone(with[common]) {
			for _, shorter := range commonParts(object) {
				delete(with[shorter], object)
			}
		}
	}
	slices.Sort(found)
	return found
}

// objects returns the objects that the facts are about, such as "services default/web".
func (f Facts) objects() map[string]bool {
	all := map[string]bool{}
	for key := range f {
		object, _ := objectOf(key)
		all[object] = true
	}
	return all
}

// commonParts returns what objects with a generated name may have in common with a given object,
// longest first. For "secrets default/web-x-1", it returns "secrets default/web-x-*", "secrets
// default/web-*" and "secrets default/*".
func commonParts(object string) []string {
	var all []string
	start := strings.LastIndexAny(object, " /") + 1
	for end := len(object) - 1; end > start; end-- {
		if object[end-1] == '-' || object[end-1] == '.' {
			all = append(all, object[:end]+"*")
		}
	}
	return append(all, object[:start]+"*")
}

// merge returns facts in which objects with a generated name count together, as the field Generated
// says. A merged object has no facts about fields. The argument named reports whether an object does
// not have a generated name.
func (b *Baseline) merge(facts Facts, named func(object string) bool) Facts {
	if len(b.Generated) == 0 {
		return facts
	}
	merged := Facts{}
	for key, value := range facts {
		object, field := objectOf(key)
		part := b.generatedPart(object)
		switch {
		case part == "" || named(object):
			merged[key] = sum(merged[key], value)
		case field == "":
			merged[part] = sum(merged[part], value)
		}
	}
	return merged
}

// generatedPart returns the element of the field Generated that the name of an object matches, longest
// first. It returns "" if there is none.
func (b *Baseline) generatedPart(object string) string {
	parts := commonParts(object)
	if i := slices.IndexFunc(parts, func(part string) bool { return slices.Contains(b.Generated, part) }); i >= 0 {
		return parts[i]
	}
	return ""
}

// countsAs returns the key under which the effects on an object count; see [Baseline.EffectsOf].
func (b *Baseline) countsAs(object string) string {
	if part := b.generatedPart(object); part != "" && !b.isNamed(object) {
		return part
	}
	return object
}

// sum adds two values of facts about whole objects. A value is a number of objects, or the text of
// [effects]. An empty text stands for zero. The result is [Any] if one of the values is.
func sum(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	if first, err := strconv.Atoi(a); err == nil {
		if second, err := strconv.Atoi(b); err == nil {
			return fmt.Sprint(first + second)
		}
	}
	first, errA := parseEffects("", a)
	second, errB := parseEffects("", b)
	if errA != nil || errB != nil || first == nil || second == nil {
		return Any
	}
	return effects{created: first.created + second.created, deleted: first.deleted + second.deleted, lost: first.lost + second.lost}.String()
}

// isNamed reports whether an object counts under its own name, which the baseline has. The name may be
// the prefix of generated names; see [HasGeneratedName].
func (b *Baseline) isNamed(object string) bool {
	_, atEnd := b.End[object]
	_, written := b.Effects[object]
	return atEnd || written
}

// EffectsOf returns the effects of a run, see [Observer.Effects], to compare them with the baseline.
// Objects with generated names count together, as in the baseline.
func (b *Baseline) EffectsOf(run *Observer) Facts { return b.merge(run.Effects(), b.isNamed) }

// endOf returns the facts about the end of a run, see [Observer.End], to compare them with the
// baseline. Objects with generated names count together, as in the baseline.
func (b *Baseline) endOf(run *Observer) Facts { return b.merge(run.End(b.Written), b.isNamed) }
