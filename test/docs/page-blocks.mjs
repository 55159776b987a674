// The fenced blocks of the pages that users and contributors read.
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { ROOT } from '../../scripts/lib/steps.mjs'

/** Decisions and release notes tell of what was; what they show may no longer work. */
const HISTORY = /^(docs\/adr\/|CHANGELOG\.md$|\.changeset\/)/
const FENCE = /^( *)(`{3,}|~{3,})([\w+-]*).*$/
const COMMENT = /^ *<!-- (run|not run|continues)(?:: (.+))? -->$/

/** Markdown files of the repository, but those of its past. Paths from its root. */
export function pages() {
  return execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '--', '*.md'], {
    cwd: ROOT,
    encoding: 'utf8',
  })
    .trim()
    .split('\n')
    .filter((file) => !HISTORY.test(file) && existsSync(path.join(ROOT, file)))
}

/**
 * The blocks of a page, in their order.
 * @throws {TypeError} When a fence has no end, a comment stands before no block, or two blocks have one name.
 */
export function blocksOf(page, text = readFileSync(path.join(ROOT, page), 'utf8')) {
  const blocks = []
  let comments = new Map()
  let open
  const expectNoComments = (line) => {
    if (comments.size > 0) throw new TypeError(`${page}:${line} a comment about a block has no block after it`)
  }
  for (const [index, line] of text.split('\n').entries()) {
    const [, indent, fence, language] = FENCE.exec(line) ?? []
    const [, key, value = ''] = COMMENT.exec(line) ?? []
    if (open !== undefined) {
      if (line.trim() === open.fence) {
        blocks.push(blockOf(page, open))
        open = undefined
      } else open.lines.push(line)
    } else if (fence !== undefined) {
      open = { indent, fence, language, comments, line: index + 2, lines: [] }
      comments = new Map()
    } else if (key !== undefined) comments.set(key, value)
    else if (line.trim() !== '') expectNoComments(index)
  }
  if (open !== undefined) throw new TypeError(`${page}:${open.line} a fence has no end`)
  expectNoComments('end')
  const twice = blocks.find(({ name }, at) => name && blocks.findIndex((other) => other.name === name) < at)
  if (twice !== undefined) throw new TypeError(`${page}: two blocks are named ${twice.name}`)
  return blocks
}

function blockOf(page, { indent, language, comments, line, lines }) {
  return {
    page,
    line,
    language,
    code: lines.map((each) => (each.startsWith(indent) ? each.slice(indent.length) : each)).join('\n'),
    name: comments.get('run'),
    continues: comments.has('continues'),
    notRun: comments.get('not run')?.split(', ') ?? [],
  }
}
