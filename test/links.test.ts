import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { DOCS_URL, REPOSITORY_URL, WebMQError } from 'webmq-client/protocol'

const ROOT = fileURLToPath(new URL('../', import.meta.url))
const readText = (file: string) => readFileSync(ROOT + file, 'utf8')
const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
  cwd: ROOT,
  encoding: 'utf8',
})
  .trim()
  .split('\n')
  .filter((file) => existsSync(ROOT + file))

/** What users read outside of the repository. */
const readmes = files.filter((file) => /^packages\/[\w-]+\/README\.md$/.test(file))
/** Files that may say the address of the repository: one module, and those that are held to it here. */
const SAY_IT = [
  'packages/client/src/protocol/docs-url.ts',
  'packages/native/crates/websocket/src/handshake/response.rs',
  'packages/native/crates/websocket/src/handshake/response_test.rs',
  'packages/client/vectors/server-messages.json',
]

/** Targets of inline links and of link definitions, without code. */
function linksOf(markdown: string): string[] {
  const text = markdown.replaceAll(/```.*?```/gs, '').replaceAll(/`[^`\n]*`/g, 'code')
  return [...text.matchAll(/\]\(([^)\s]+)\)|^\[[^\]]+\]: (\S+)$/gm)].map(
    ([, inline, defined]) => inline ?? defined ?? '',
  )
}

/** Anchors of the headings, as GitHub makes them. */
function anchorsOf(file: string): string[] {
  return [...readText(file).matchAll(/^#{1,6} (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\w\s-]/g, '')
      .replaceAll(/\s/g, '-'),
  )
}

/** Why nobody gets there from a link into the repository; `undefined` when it works. */
function defectOf(link: string): string | undefined {
  const [, kind, path = '', anchor] = /\/(blob|tree)\/main\/([^#]+)(?:#(.+))?$/.exec(link) ?? []
  if (!existsSync(ROOT + path)) return `${link}: no such file`
  if (statSync(ROOT + path).isDirectory() !== (kind === 'tree')) return `${link}: blob is for files, tree for folders`
  if (anchor !== undefined && !anchorsOf(path).includes(anchor)) return `${link}: no such heading`
  return undefined
}

describe('links', () => {
  it('lead somewhere from every README of a package, also on npm', () => {
    expect(readmes.length).toBeGreaterThanOrEqual(4)
    const all = readmes.flatMap((file) => linksOf(readText(file)).map((link) => ({ file, link })))
    expect(all.length).toBeGreaterThan(20)
    expect(all.filter(({ link }) => !/^(https:\/\/|#)/.test(link))).toEqual([])
    const within = all.filter(({ link }) => link.startsWith('#'))
    expect(within.filter(({ file, link }) => !anchorsOf(file).includes(link.slice(1)))).toEqual([])
    const ours = all.map(({ link }) => link).filter((link) => link.startsWith(REPOSITORY_URL))
    expect(ours.flatMap((link) => defectOf(link) ?? [])).toEqual([])
  })

  it('lead from an error to its section', () => {
    const { docs } = new WebMQError('E_ORIGIN_FORBIDDEN')
    expect(docs.startsWith(DOCS_URL)).toBe(true)
    expect(defectOf(docs)).toBeUndefined()
    expect(readText('packages/native/crates/websocket/src/handshake/response.rs')).toContain(
      `const ERRORS_PAGE: &str = "${docs.split('#')[0]}";`,
    )
  })

  it('into the repository have their address from one module', () => {
    const code = files.filter((file) => /\.(ts|mjs|js|rs|html|json)$/.test(file) && !/(^|\/)package\.json$/.test(file))
    expect(code.filter((file) => readText(file).includes(REPOSITORY_URL)).toSorted()).toEqual(SAY_IT.toSorted())
  })
})
