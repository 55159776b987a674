import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Block } from './page-blocks.mjs'

export const ROOT = fileURLToPath(new URL('../../', import.meta.url))

/** Modules of one block, with what they were made of. */
export interface BlockModule {
  readonly block: Block
  /** Path of the module, which is not written: imports are resolved from there. */
  readonly path: string
  readonly text: string
}

/**
 * A module for each block. A block that continues another one is in a scope within it, so that it may use and replace
 * its names. Imports go to the top. One from `./name.ts` is of the block of its page that begins with `// src/name.ts`.
 *
 * @throws {TypeError} When the first block of a page continues.
 */
export function modulesOf(blocks: readonly Block[]): BlockModule[] {
  return blocks.map((block, index) => {
    const chain = [block]
    for (let at = index; blocks[at]?.continues; at--) {
      const before = blocks[at - 1]
      if (before?.page !== block.page) throw new TypeError(`${block.page}:${block.line} continues nothing`)
      chain.unshift(before)
    }
    const imports: string[] = []
    let body = ''
    for (const { code } of chain.toReversed()) {
      const own = code.replace(/^import [^\n]*$/gm, (line) => {
        imports.push(line)
        return ''
      })
      body = body === '' ? own : `${own}\n{\n${body}\n}`
    }
    const text = `${[...new Set(imports)].join('\n')}\n${body}\nexport {}\n`.replaceAll(
      /(?<=from ')\.\/(\w+\.tsx?)(?=')/g,
      (named, file) => {
        const other = blocks.find(({ page, code }) => page === block.page && code.startsWith(`// src/${file}\n`))
        return other === undefined ? named : `./${fileOf(other)}`
      },
    )
    return { block, path: join(folderOf(block.page), fileOf(block)), text }
  })
}

function fileOf({ page, line, language }: Block): string {
  return `docs-${page.replace(/\W/g, '-')}-${line}.${language}`
}

/** Where the packages are installed that a page imports. */
function folderOf(page: string): string {
  if (/^(packages|examples)\//.test(page)) return join(ROOT, dirname(page))
  return /^docs.(client|first-app|streams|with)/.test(page) ? join(ROOT, 'packages/client') : ROOT
}
