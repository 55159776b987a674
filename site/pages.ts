import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

export const ROOT = fileURLToPath(new URL('../', import.meta.url))

/** A Markdown file of the repository, as a page of the site. */
export interface SitePage {
  /** Path from the repository's root. */
  readonly file: string
  /** Path from the site's root, without an ending. */
  readonly route: string
  readonly title: string
  /** The first paragraph as plain text. */
  readonly summary: string
}

interface Group {
  readonly text: string
  /** Files, or what their paths begin with, in the order of the menu. */
  readonly files: readonly string[]
  /** Nobody who only uses WebMQ needs it. */
  readonly isOptional?: boolean
  /** The menu shows only its title, until a reader opens it; an optional one always does so. */
  readonly isFolded?: boolean
}

/** The menu. A page belongs to the group with the longest beginning of its path. */
const GROUPS: readonly Group[] = [
  {
    text: 'Begin',
    files: [
      ...['README.md', 'docs/first-app.md', 'site/playground.md', 'packages/client/README.md', 'docs/client.md'],
      ...['docs/client/recipes.md', 'docs/client/types.md', 'examples/'],
    ],
  },
  {
    text: 'Parts',
    files: [
      ...['docs/client/state.md', 'docs/presence.md', 'docs/client/history.md', 'docs/streams.md'],
      ...['docs/client/requests.md', 'docs/client/outbox.md', 'docs/client/latest.md', 'docs/client/'],
    ],
  },
  {
    text: 'Your framework',
    files: [
      ...['react', 'vue', 'svelte', 'tanstack-query', 'react-native', 'proxy', 'devtools'].map(
        (name) => `docs/client/${name}.md`,
      ),
      'docs/with/',
    ],
  },
  { text: 'Without JavaScript', files: ['clients/', 'docs/sse.md'] },
  { text: 'What is promised', files: ['docs/guarantees.md', 'docs/checker.md', 'docs/comparison.md'] },
  {
    text: 'Server',
    files: [
      'packages/server/README.md',
      ...named('configuration', 'brokers', 'running-brokers', 'mesh'),
      ...['rabbitmq', 'redis', 'nats'].map((name) => `packages/broker-${name}/README.md`),
      'docs/database-outbox.md',
      'packages/outbox-postgres/README.md',
      ...named('hooks', 'http-api', 'cli'),
    ],
  },
  { text: 'Operate', files: named('operations', 'security', 'tls', 'scaling', 'benchmarks', 'bounds') },
  { text: 'Coming from', isFolded: true, files: ['docs/client/from-'] },
  {
    text: 'Reference',
    isFolded: true,
    files: [...named('errors', 'protocol'), 'packages/client/vectors/', 'docs/', 'CHANGELOG.md'],
  },
  {
    text: 'The code',
    isOptional: true,
    files: ['ARCHITECTURE.md', 'CONTRIBUTING.md', 'SECURITY.md', 'docs/releasing.md', 'packages/', ''],
  },
  { text: 'Decisions', isOptional: true, files: ['docs/adr/'] },
]

function named(...names: readonly string[]): string[] {
  return names.map((name) => `docs/${name}.md`)
}

/** All pages: the Markdown files that are, or could be, in the repository. */
export function sitePages(): SitePage[] {
  const files = git('--cached', '--others', '--exclude-standard', '--', '*.md', `:!${NO_PAGES}`)
  return files.filter((file) => existsSync(path.join(ROOT, file))).map(pageOf)
}

/** Patterns of the files that are no pages: notes for the next release, and all that git ignores. */
export function otherFiles(): string[] {
  const ignored = git('--others', '--ignored', '--exclude-standard', '--directory')
  return [`${NO_PAGES}/**`, ...ignored.map((name) => (name.endsWith('/') ? `${name}**` : name))]
}

const NO_PAGES = '.changeset'

function git(...args: readonly string[]): string[] {
  return execFileSync('git', ['ls-files', ...args], { cwd: ROOT, encoding: 'utf8' })
    .trim()
    .split('\n')
}

function pageOf(file: string): SitePage {
  const [, title = file, rest = ''] = /^# (.+)$([\s\S]*)/m.exec(readPage(file)) ?? []
  const paragraphs = rest.replaceAll(/^```[\s\S]*?^```/gm, '').split(/\n{2,}/)
  const first = paragraphs.find((paragraph) => /^\s*(?:\*\*)?[`\w]/.test(paragraph)) ?? ''
  return { file, route: routeOf(file), title: plain(title), summary: plain(first) }
}

/** The text of a page, without comments for tests and for those who edit. */
export function readPage(file: string): string {
  return readFileSync(path.join(ROOT, file), 'utf8').replaceAll(/^<!--[\s\S]*?-->\n+/gm, '')
}

function routeOf(file: string): string {
  if (file === 'README.md') return 'index'
  // docs/security.md is another page.
  if (file === 'SECURITY.md') return 'vulnerabilities'
  return file
    .replace(/^(docs|site)\//, '')
    .replace(/(\/README)?\.md$/, '')
    .toLowerCase()
}

function plain(markdown: string): string {
  return markdown
    .replaceAll(/!?\[([^\]]*)\](\([^)]*\)|\[[^\]]*\])?/g, '$1')
    .replaceAll(/[*`]/g, '')
    .replaceAll(/\s+/g, ' ')
    .trim()
}

/** The pages by group, in the order of the menu. */
export function groupsOf(pages: readonly SitePage[]) {
  const ranked = pages.map((page) => {
    const places = GROUPS.flatMap(({ files }, group) =>
      files.map((start, index) => ({ group, index, length: page.file.startsWith(start) ? start.length : -1 })),
    )
    const place = places.reduce((best, each) => (each.length > best.length ? each : best))
    return { page, ...place }
  })
  const byPlace = ranked.toSorted((a, b) => a.index - b.index || (a.page.file < b.page.file ? -1 : 1))
  return GROUPS.map(({ text, isOptional = false, isFolded = isOptional }, index) => ({
    text,
    isOptional,
    isFolded,
    pages: byPlace.filter(({ group }) => group === index).map(({ page }) => page),
  }))
}
