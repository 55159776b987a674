import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { defineConfig } from 'vitepress'
import { REPOSITORY_URL } from '../../packages/client/src/protocol/docs-url.ts'
import { anchorOf } from '../links.ts'
import { writeTexts } from '../llms.ts'
import { groupsOf, otherFiles, ROOT, sitePages } from '../pages.ts'
import { playgroundFrame } from '../playground/bundle.ts'
import { sourceOf } from '../render.ts'
import { folderOf, releasesOf } from '../versions.ts'

/** A token of markdown-it. */
interface Token {
  readonly type: string
  readonly children: readonly Token[] | null
  attrGet(name: string): string | null
  attrSet(name: string, value: string): void
}

/** A paragraph of pictures only: a drawing scrolls where it is too wide, and several stand beside each other. */
function markPictures({ children }: Token, paragraph?: Token): void {
  const parts = children?.filter(({ type }) => type !== 'softbreak') ?? []
  if (paragraph?.type !== 'paragraph_open' || parts.length === 0) return
  if (!parts.every(({ type }) => type === 'image')) return
  const isDrawing = parts.length === 1 && String(parts[0]?.attrGet('src')).endsWith('.svg')
  paragraph.attrSet('class', isDrawing ? 'drawing' : 'pictures')
  if (isDrawing) paragraph.attrSet('tabindex', '0')
}

const version = process.env.WEBMQ_DOCS_VERSION
const pages = sitePages()
const site = { pages, ref: version === undefined ? 'main' : `v${version}` }
const groups = groupsOf(pages)
const home = pages.find(({ route }) => route === 'index')
const releases = releasesOf(readFileSync(path.join(ROOT, 'CHANGELOG.md'), 'utf8'))
const outDir = process.env.WEBMQ_DOCS_OUT ?? path.join(ROOT, 'site/dist', folderOf(version))

export default defineConfig({
  title: home?.title ?? '',
  description: home?.summary ?? '',
  srcDir: ROOT,
  srcExclude: otherFiles(),
  // None: it would load every `config.ts` of the repository.
  additionalConfig: {},
  rewrites: (file) => {
    const page = pages.find((each) => each.file === file)
    return page === undefined ? file : `${page.route}.md`
  },
  // A build works in any folder: that of its version, behind any path.
  base: './',
  outDir,
  cacheDir: path.join(ROOT, '.cache/docs'),
  head: [['link', { rel: 'icon', href: 'data:,' }]],
  transformHead: ({ page }) => [['link', { rel: 'alternate', type: 'text/markdown', href: path.posix.basename(page) }]],
  buildEnd: () => {
    writeTexts(site, outDir)
    if (version === undefined) return
    // Whoever comes without a version gets this one.
    const to = `<meta http-equiv="refresh" content="0; url=${folderOf(version)}/">`
    writeFileSync(path.join(outDir, '..', 'index.html'), `<!doctype html><title>WebMQ</title>${to}\n`)
  },
  markdown: {
    anchor: { slugify: anchorOf },
    config: (markdown) => {
      markdown.set({ linkify: false })
      markdown.core.ruler.push('accessible tables', ({ tokens }) => {
        for (const [index, token] of tokens.entries()) {
          // A wide one scrolls, also with the keyboard.
          if (token.type === 'table_open') token.attrSet('tabindex', '0')
          if (token.type === 'inline') markPictures(token, tokens[index - 1])
          // Vue would evaluate what stands in two braces.
          for (const each of token.children ?? []) if (each.type === 'code_inline') each.attrSet('v-pre', '')
          // A corner without a text is no heading.
          if (token.type !== 'th_open' || tokens[index + 1]?.content !== '') continue
          for (const each of [token, tokens[index + 2]]) if (each !== undefined) each.tag = 'td'
        }
      })
    },
  },
  themeConfig: {
    search: { provider: 'local' },
    nav: [
      { text: 'Client', link: '/packages/client' },
      { text: 'Server', link: '/packages/server' },
      { text: 'Promises', link: '/guarantees' },
      { text: 'Playground', link: '/playground' },
      { component: 'VersionMenu', props: { version: folderOf(version), releases: releases.map(folderOf) } },
    ],
    sidebar: groups.map(({ text, isFolded, pages: ofGroup }) => ({
      text,
      collapsed: isFolded,
      items: ofGroup.map(({ title, route }) => ({ text: title, link: `/${route}` })),
    })),
    outline: [2, 3],
    editLink: { pattern: `${REPOSITORY_URL}/edit/main/:path`, text: 'Edit this page' },
  },
  vite: {
    publicDir: false,
    build: { assetsInlineLimit: 0, chunkSizeWarningLimit: 4_000 },
    plugins: [
      {
        name: 'webmq:pages',
        enforce: 'pre',
        // The pages are outside of the package that has it.
        resolveId(id, importer, options) {
          if (!/^vue(\/|$)/.test(id) || !importer?.endsWith('.md')) return undefined
          return this.resolve(id, path.join(ROOT, 'site/package.json'), { ...options, skipSelf: true })
        },
        transform: (_, id) => {
          const page = pages.find(({ file }) => path.join(ROOT, file) === id)
          return page && sourceOf(site, page)
        },
      },
      playgroundFrame(),
    ],
  },
})
