const HEADING = /^## Unreleased[ \t]*\n/m

/** The changelog with its unreleased part as that of a version. Throws when nothing is written there. */
export function released(text, version, date) {
  const [before, after] = text.split(HEADING)
  if (after === undefined) throw new Error('CHANGELOG.md has no heading `## Unreleased`')
  const part = after.split(/^## /m)[0].trim()
  if (part === '') throw new Error('CHANGELOG.md says nothing under `## Unreleased`')
  return `${before}## Unreleased\n\n## ${version} (${date})\n${after}`
}

/** What a version brings: its part of the changelog, without the heading. */
export function partOf(text, version) {
  const heading = new RegExp(`^## ${version.replaceAll('.', '\\.')}( .*)?\\n`, 'm')
  return text.split(heading)[2]?.split(/^## /m)[0].trim()
}
