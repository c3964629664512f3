package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
	"github.com/kube-gauntlet/gauntlet/harness/internal/explore"
	"github.com/kube-gauntlet/gauntlet/harness/internal/outputfile"
	"github.com/kube-gauntlet/gauntlet/harness/run"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// writable is the mode for access(2) of a directory in which gauntlet creates files: W_OK and X_OK.
const writable = 0o3

// checkDirectory returns an error if the value of a flag is no directory for output. The directory
// need not exist, but it must be possible to create it. An empty path means that the flag is not
// set.
func checkDirectory(flag, path string) error {
	if path == "" {
		return nil
	}
	if scheme, _, found := strings.Cut(path, "://"); found {
		return fmt.Errorf("--%s=%s: found a URL with the scheme %.20q; expected a directory on this machine", flag, path, scheme)
	}
	parent, err := existing(path)
	switch {
	case err != nil:
		return fmt.Errorf("--%s=%s: %w; expected a directory", flag, path, inputfile.Reason(err))
	case parent != filepath.Clean(path):
		err = checkParent(parent)
	case !isDirectory(path):
		return fmt.Errorf("--%s=%s: found a file; expected a directory", flag, path)
	default:
		err = syscall.Access(path, writable)
	}
	if err != nil {
		return fmt.Errorf("--%s=%s: %w; expected a directory in which files can be created", flag, path, err)
	}
	return nil
}

// existing returns the path itself, or the nearest directory above it that exists. It returns an
// error for a symbolic link that leads nowhere.
func existing(path string) (string, error) {
	for path = filepath.Clean(path); ; path = filepath.Dir(path) {
		_, err := os.Stat(path)
		absent := errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
		info, linkErr := os.Lstat(path)
		if absent && linkErr == nil && info.Mode()&fs.ModeSymlink == 0 {
			return path, nil // another process has just created it
		}
		if absent && linkErr == nil {
			return path, fmt.Errorf("found the symbolic link %s, which leads nowhere", path)
		}
		if err == nil || !absent || path == filepath.Dir(path) {
			return path, err
		}
	}
}

// newDirectory creates a directory for the reports of a command, and returns its path. The name
// consists of an argument and a time. If the directory cannot be created, it returns the path without a
// directory, and writing the reports returns the error.
func newDirectory(parent, name string, begun time.Time) string {
	name += "-" + begun.UTC().Format("20060102T150405")
	if dir, err := outputfile.CreateDirectory(parent, name); err == nil {
		return dir
	}
	return filepath.Join(parent, name)
}

// isDirectory reports whether a path is that of a directory.
func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// checkParent returns an error if no directory can be created in a directory.
func checkParent(dir string) error {
	if !isDirectory(dir) {
		return fmt.Errorf("%s is a file", dir)
	}
	if err := probe(dir); err != nil {
		return fmt.Errorf("cannot create a directory in %s: %w", dir, err)
	}
	return nil
}

// probe returns an error if nothing can be created in a directory. To find out, it creates a directory
// and removes it again, because some file systems, such as /proc, look writable.
func probe(dir string) error {
	created, err := os.MkdirTemp(dir, ".gauntlet-*")
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return nil // not a mistake of the user
	case err != nil:
		return inputfile.Reason(err)
	}
	return os.Remove(created)
}

// checkFile returns an error if the value of a flag is no file for output. The file need not exist,
// but its directory must.
func checkFile(flag, path string) error {
	if isDirectory(path) {
		return fmt.Errorf("--%s=%s: found a directory; expected a file", flag, path)
	}
	switch info, err := os.Stat(path); {
	case (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ELOOP)) && isSymlink(path):
		return fmt.Errorf("--%s=%s: found a symbolic link that leads nowhere%s; expected a file", flag, path, inputfile.MissingTarget(path))
	case errors.Is(err, syscall.ENAMETOOLONG):
		return fmt.Errorf("--%s=%s: %w; expected a shorter name", flag, path, inputfile.Reason(err))
	case err == nil && !info.Mode().IsRegular():
		// A path such as /dev/stdout leads to an open pipe, which has no path of its own.
		if _, err := filepath.EvalSymlinks(path); err != nil || info.Mode()&fs.ModeCharDevice != 0 {
			return nil
		}
		return fmt.Errorf("--%s=%s: found %s; expected a regular file", flag, path, inputfile.Describe(info.Mode()))
	}
	dir := outputfile.Directory(path)
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		err = inputfile.Reason(err)
	case !info.IsDir():
		err = errors.New("found a file")
	default:
		err = cmp.Or(syscall.Access(dir, writable), probe(dir))
		if errors.Is(err, fs.ErrNotExist) { // for example in /proc, whose files only the kernel creates
			return fmt.Errorf("--%s=%s: directory %s: no file can be created in it; name a file in another one", flag, path, dir)
		}
	}
	switch {
	case err != nil && info != nil: // the directory exists
		return fmt.Errorf("--%s=%s: directory %s: %w; name a file in a directory in which files can be created", flag, path, dir, err)
	case err != nil:
		return fmt.Errorf("--%s=%s: directory %s: %w; create the directory, or name a file in another one", flag, path, dir, err)
	}
	return nil
}

// isSymlink reports whether a path is that of a symbolic link.
func isSymlink(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// checkSearchDirectory returns an error if "gauntlet explore" cannot use the directory of --dir. A
// directory with the plan of a search is valid, because the command continues this search.
func checkSearchDirectory(dir string) error {
	hasPlan := func(string) bool { return true } // the search validates its plan
	return checkOwnDirectory("dir", dir, explore.PlanName, hasPlan, explore.ResultsName)
}

// checkCampaignDirectory returns an error if a command cannot write the report of a fleet's campaign
// to a directory. A directory with an earlier report of a campaign is valid.
func checkCampaignDirectory(dir string) error {
	return checkOwnDirectory("out", dir, failuresName, func(path string) bool {
		text, err := inputfile.Read(path)
		return err == nil && reports.HasFailureGroups(text)
	}, coverageName)
}

// checkOwnDirectory returns an error if a command cannot write its reports to a directory. The
// directory is valid if it has the file named own, which such a command has written. The argument
// isOwn reports whether such a command wrote the file. The argument others has further files that the
// command would replace.
func checkOwnDirectory(flag, dir, own string, isOwn func(path string) bool, others ...string) error {
	if err := checkDirectory(flag, dir); err != nil {
		return err
	}
	path := filepath.Join(dir, own)
	if _, err := os.Stat(path); err == nil && isOwn(path) {
		return nil
	} else if err == nil {
		return checkAbsent(flag, dir, []string{own})
	}
	if err := checkReports(flag, dir); err != nil {
		return err
	}
	return checkAbsent(flag, dir, others)
}

// checkReports returns an error if reports in a directory would replace files of something else.
// That is another run, campaign or search, or files that gauntlet did not write.
func checkReports(flag, dir string) error {
	for _, other := range []struct{ file, kind string }{
		{filepath.Base(run.HistoryFile(dir)), "a run"},
		{explore.PlanName, "a search of gauntlet explore"},
		{failuresName, "a campaign"},
	} {
		if _, err := os.Lstat(filepath.Join(dir, other.file)); err == nil {
			return fmt.Errorf("--%s=%s: found the directory of %s; expected another directory, because the reports would replace the verdicts there", flag, dir, other.kind)
		}
	}
	if _, err := reports.ReadDirectory(dir); err == nil {
		return nil // an earlier report
	}
	return checkAbsent(flag, dir, reports.FileNames())
}

// checkAbsent returns an error if a directory contains one of the files. An empty file is valid, because
// an interrupted search leaves one.
func checkAbsent(flag, dir string, names []string) error {
	for _, name := range names {
		if info, err := os.Lstat(filepath.Join(dir, name)); err == nil && info.Size() > 0 {
			return fmt.Errorf("--%s=%s: found the file %s, but no valid report of gauntlet; expected another directory, because the reports would replace this file", flag, dir, name)
		}
	}
	return nil
}
