import { existsSync, readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { REPOSITORY_URL } from '../packages/client/src/protocol/docs-url.ts'

/** A link from a file of the repository to another one, or into itself. */
export interface RepositoryLink {
  /** Path of the target from the repository's root. */
  readonly path: string
  /** `#` and the name of a heading, or nothing. */
  readonly anchor: string
}

/** Blocks and spans of code: their text is no link. */
const CODE = /(^ *```[\s\S]*?^ *```|`[^`\n]*`)/m
/** Targets of inline links, and of definitions of links. */
const TARGET = /(\]\()([^)\s]+)(?=[)\s])|^(\[[^\]]+\]: )(\S+)$/gm
const IN_REPOSITORY = new RegExp(`^${REPOSITORY_URL}/(?:blob|tree)/main/([^#]+)(#.*)?$`)

/** Targets of all links of a Markdown text. */
export function linksOf(markdown: string): string[] {
  const targets: string[] = []
  relinked(markdown, (target) => {
    targets.push(target)
    return target
  })
  return targets
}

/** The text with other targets of its links. */
export function relinked(markdown: string, to: (target: string) => string): string {
  const parts = markdown.split(CODE)
  const others = parts.map((part, index) =>
    index % 2 === 1
      ? part
      : part.replaceAll(TARGET, (_, open, inline, definition, defined) =>
          inline === undefined ? `${definition}${to(defined)}` : `${open}${to(inline)}`,
        ),
  )
  return others.join('')
}

/** Where a link of this file leads within the repository; `undefined` if it leaves it. */
export function repositoryLink(file: string, target: string): RepositoryLink | undefined {
  const [, ours, ourAnchor = ''] = IN_REPOSITORY.exec(target) ?? []
  if (ours !== undefined) return { path: normal(ours), anchor: ourAnchor }
  if (/^[a-z]+:/.test(target)) return undefined
  const [name = '', anchor] = target.split('#')
  const resolved = name === '' ? file : path.posix.join(path.posix.dirname(file), name)
  return { path: normal(resolved), anchor: anchor === undefined ? '' : `#${anchor}` }
}

function normal(name: string): string {
  return path.posix.normalize(name).replace(/\/$/, '')
}

/** Why nobody gets where a link leads; `undefined` when it works. */
export function defectOf(root: string, link: RepositoryLink): string | undefined {
  const file = path.join(root, link.path)
  if (!existsSync(file)) return `${link.path}: no such file`
  if (link.anchor === '' || !link.path.endsWith('.md')) return undefined
  if (statSync(file).isDirectory()) return `${link.path}: a folder has no headings`
  const anchors = anchorsOf(readFileSync(file, 'utf8'))
  return anchors.includes(link.anchor.slice(1)) ? undefined : `${link.path}${link.anchor}: no such heading`
}

/** Anchors of the headings, as GitHub makes them. */
function anchorsOf(markdown: string): string[] {
  return [...markdown.matchAll(/^#{1,6} (.+)$/gm)].map(([, heading = '']) => anchorOf(heading))
}

/** Anchor of a heading, as GitHub makes it. */
export function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\w\s-]/g, '')
    .replaceAll(/\s/g, '-')
}
