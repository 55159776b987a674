import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { DOCS_URL, REPOSITORY_URL, WebMQError } from 'webmq-client/protocol'
import { defectOf, linksOf, repositoryLink } from '../site/links.ts'
import { type SitePage, sitePages } from '../site/pages.ts'
import { sourceOf, twinOf } from '../site/render.ts'

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

/** Why nobody gets there from a link into the repository, also on npm; `undefined` when it works. */
function defectOnGitHub(link: string): string | undefined {
  const target = repositoryLink('', link)
  const defect = target && defectOf(ROOT, target)
  if (target === undefined || defect !== undefined) return `${link}: ${defect ?? 'no file of the repository'}`
  const isFolder = statSync(ROOT + target.path).isDirectory()
  return isFolder === link.includes('/tree/main/') ? undefined : `${link}: blob is for files, tree for folders`
}

describe('links', () => {
  it('lead somewhere from every README of a package, also on npm', () => {
    expect(readmes.length).toBeGreaterThanOrEqual(4)
    const all = readmes.flatMap((file) => linksOf(readText(file)).map((link) => ({ file, link })))
    expect(all.length).toBeGreaterThan(20)
    expect(all.filter(({ link }) => !/^(https:\/\/|#)/.test(link))).toEqual([])
    const ours = all.map(({ link }) => link).filter((link) => link.startsWith(REPOSITORY_URL))
    expect(ours.flatMap((link) => defectOnGitHub(link) ?? [])).toEqual([])
  })

  it('lead somewhere from every page of the site, and from its Markdown', () => {
    const site = { pages: sitePages(), ref: 'main' }
    expect(site.pages.length).toBeGreaterThan(90)
    for (const page of site.pages) {
      expect(sourceOf(site, page)).not.toBe('')
      expect(twinOf(site, page)).toMatch(/^# /)
    }
  })

  // Symptom: the site did not build, which is seen only when it is. Cause: to it a line that begins so is an element.
  it('have no code that is broken before a <', () => {
    for (const { file } of sitePages())
      expect([file, /^<[^>\n]*>[^<\n]*`/m.exec(readText(file))?.[0]]).toEqual([file, undefined])
  })

  it.each([
    ['client.md', 'docs/adr/client.md: no such file'],
    ['../client.md#nowhere', 'docs/client.md#nowhere: no such heading'],
    [`${REPOSITORY_URL}/blob/main/docs/nowhere.md`, 'docs/nowhere.md: no such file'],
    ['#nowhere', 'docs/adr/README.md#nowhere: no such heading'],
  ])('that are dead end the build of the site: %s', (target, defect) => {
    const site = { pages: sitePages(), ref: 'main' }
    const page = site.pages.find(({ file }) => file === 'docs/adr/README.md') as SitePage
    expect(() => sourceOf(site, page, `[there](${target} "a title")`)).toThrow(`has a dead link: ${defect}`)
    expect(() => sourceOf(site, page, `[there]: ${target}`)).toThrow(defect)
    expect(sourceOf(site, page, `\`[there](${target})\``)).toContain(target)
  })

  it('lead from an error to its section', () => {
    const { docs } = new WebMQError('E_ORIGIN_FORBIDDEN')
    expect(docs.startsWith(DOCS_URL)).toBe(true)
    expect(defectOnGitHub(docs)).toBeUndefined()
    expect(readText('packages/native/crates/websocket/src/handshake/response.rs')).toContain(
      `const ERRORS_PAGE: &str = "${docs.split('#')[0]}";`,
    )
  })

  it('and paths of CONTRIBUTING.md name files that are there', () => {
    const paths = [...readText('CONTRIBUTING.md').matchAll(/`([\w.<>-]+\/[\w./<>-]*|[\w-]+\.(?:ts|mjs|toml))`/g)]
      .map(([, name = '']) => name)
      .filter((name) => !/^(\.cache|site\/dist|webmq-)/.test(name))
    expect(paths.length).toBeGreaterThan(50)
    // Placeholders stand for any name. The section "I want to add" begins its paths in `packages`.
    const patterns = paths.map((name) => name.replaceAll('.', '\\.').replaceAll(/<\w+>/g, '[\\w-]+'))
    const isThere = (pattern: string) => files.some((file) => new RegExp(`^(packages/)?${pattern}`).test(file))
    expect(patterns.filter((pattern) => !isThere(pattern))).toEqual([])
  })

  it('into the repository have their address from one module', () => {
    const code = files.filter((file) => /\.(ts|mjs|js|rs|html|json)$/.test(file) && !/(^|\/)package\.json$/.test(file))
    expect(code.filter((file) => readText(file).includes(REPOSITORY_URL)).toSorted()).toEqual(SAY_IT.toSorted())
  })
})
