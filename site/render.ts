import { statSync } from 'node:fs'
import path from 'node:path'
import { REPOSITORY_URL } from '../packages/client/src/protocol/docs-url.ts'
import { defectOf, type RepositoryLink, relinked, repositoryLink } from './links.ts'
import { ROOT, readPage, type SitePage } from './pages.ts'
import { PLAYGROUNDS } from './playground/places.ts'

/** What all pages of a build share. */
export interface Site {
  readonly pages: readonly SitePage[]
  /** Branch or tag of the files that are no pages. */
  readonly ref: string
}

/** A page of the site need not say what it would have there. */
const ONLY_ON_GITHUB = /^> GitHub shows [\s\S]*?\n\n/m

/**
 * The source of a page for VitePress: its file with links to routes, and with what only the site has.
 * @throws {Error} for a dead link.
 */
export function sourceOf(site: Site, page: SitePage, markdown = readPage(page.file)): string {
  const text = withLinks(site, page, markdown, (link, other) => {
    if (other !== undefined) return `/${other.route}.md${link.anchor}`
    // VitePress copies pictures, which it finds from the file.
    const isPicture = /\.(svg|png|webp)$/.test(link.path)
    return isPicture ? path.posix.relative(path.posix.dirname(page.file), link.path) : outside(site, link)
  })
  const whole = withPlayground(text.replace(ONLY_ON_GITHUB, ''), page.file)
  if (page.route === 'playground') return `---\nsidebar: false\naside: false\npageClass: playground-page\n---\n${whole}`
  return page.route === 'index' ? asHome(whole) : whole
}

/**
 * A page as Markdown, for programs that read it: its links lead to such pages.
 * @param folder Folder of the route from where they lead there.
 */
export function twinOf(site: Site, page: SitePage, folder = path.posix.dirname(page.route)): string {
  return withLinks(site, page, readPage(page.file), (link, other) =>
    other === undefined ? outside(site, link) : `${path.posix.relative(folder, other.route)}.md${link.anchor}`,
  )
}

function withLinks(
  site: Site,
  page: SitePage,
  markdown: string,
  to: (link: RepositoryLink, other?: SitePage) => string,
): string {
  return relinked(markdown, (target) => {
    const link = repositoryLink(page.file, target)
    if (link === undefined) return target
    const defect = defectOf(ROOT, link)
    if (defect !== undefined) throw new Error(`${page.file} has a dead link: ${defect}`)
    return target.startsWith('#') ? target : to(link, pageAt(site, link))
  })
}

function pageAt({ pages }: Site, { path: name }: RepositoryLink): SitePage | undefined {
  return pages.find(({ file }) => file === name || file === `${name}/README.md`)
}

function outside({ ref }: Site, link: RepositoryLink): string {
  const kind = statSync(path.join(ROOT, link.path)).isDirectory() ? 'tree' : 'blob'
  return `${REPOSITORY_URL}/${kind}/${ref}/${link.path}${link.anchor}`
}

/** The README as the first page: its title and its promise become the head. Badges are for GitHub and npm. */
function asHome(text: string): string {
  const [, name, words, tagline, body] = /^# (.+)\n\n\*\*([^.]+\.) (.+)\*\*\n\n([\s\S]*)$/.exec(text) ?? []
  if (body === undefined) throw new Error('README.md does not begin with a title and the promise in bold')
  const hero = {
    name,
    text: words,
    tagline: tagline?.replaceAll('*', ''),
    actions: [
      { theme: 'brand', text: 'Quick start', link: '#quick-start' },
      { theme: 'alt', text: 'Playground', link: '/playground' },
      { theme: 'alt', text: 'GitHub', link: REPOSITORY_URL },
    ],
  }
  return `---\nlayout: FirstPage\nsidebar: false\nhero: ${JSON.stringify(hero)}\n---\n${body.replaceAll(/^.*img\.shields\.io.*\n/gm, '')}`
}

/** Puts the playground of a page at its place. */
function withPlayground(text: string, file: string): string {
  const place = PLAYGROUNDS.find((each) => each.file === file)
  if (place === undefined) return text
  const example = place.example === undefined ? '' : `example="${place.example}" `
  if (place.title !== undefined) {
    return text.replace(
      /^# .+\n\n\*\*[\s\S]*?\*\*\n\n/,
      (head) => `${head}## ${place.title}\n\n<LivePlayground ${example}/>\n\n`,
    )
  }
  const start = place.heading === undefined ? 0 : text.indexOf(`\n## ${place.heading}\n`) + 1
  const end = text.indexOf('\n## ', start)
  if (end < 0 || (place.heading !== undefined && start === 0)) throw new Error(`${file} has no place for a playground`)
  return `${text.slice(0, end)}\n<LivePlayground ${example}/>\n${text.slice(end)}`
}
