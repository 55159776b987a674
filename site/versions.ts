/** Releases in the changelog, the newest first. */
export function releasesOf(changelog: string): string[] {
  return [...changelog.matchAll(/^## (\d+\.\d+\.\d+)/gm)].map(([, version = '']) => version)
}

/** Folder of a version; patches replace each other. Without a version it is what comes next. */
export function folderOf(version: string | undefined): string {
  return version === undefined ? 'next' : `v${version.split('.').slice(0, 2).join('.')}`
}
