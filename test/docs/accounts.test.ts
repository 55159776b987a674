import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { firstAppChecks } from '../packages/checks/first-app.mjs'
import { frameworkChecks } from '../packages/checks/frameworks.mjs'
import { proxyChecks } from '../packages/checks/proxies.mjs'
import { reactNativeChecks } from '../packages/checks/react-native.mjs'
import { releaseChecks } from '../packages/checks/release.mjs'
import { ROOT } from './blocks.js'
import { type Block, blocksOf, pages } from './page-blocks.mjs'
import { allBlocks, READERS, readerOf } from './readers.mjs'
import { commandsOf, isExcused, REASONS } from './reasons.js'

const blocks = allBlocks()
/** It looks only whether what they name is there. */
const NO_RUN = 'test/docs/tool-commands.test.ts'
const readersOf = (block: Block) => Object.keys(READERS).filter((file) => file !== NO_RUN && READERS[file]?.(block))
const placeOf = ({ page, line, language }: Block) => `${page}:${line} ${language}`

/** Whether each command, or the block as a whole, may do what the reason says. */
function isWhollyExcused(block: Block): boolean {
  if (block.language === 'sh') return commandsOf(block).every((command) => isExcused(block, command))
  return block.notRun.some((reason) => REASONS[reason]?.languages.includes(block.language))
}

it('every block of every page is read by a test that runs, compiles or parses it, or says why it is not', () => {
  const others = blocks.filter((block) => readersOf(block).length === 0 && !isWhollyExcused(block))
  expect(others.map(placeOf)).toEqual([])
})

it('a block that is read as a whole gives no reason, and every reason is of the list and of use', () => {
  const idle = blocks.filter(
    (block) => block.language !== 'sh' && block.notRun.length > 0 && readersOf(block).length > 0,
  )
  expect(idle.map(placeOf)).toEqual([])
  const useless = blocks.flatMap((block) => {
    const excuses = (reason: string) =>
      block.language === 'sh'
        ? commandsOf(block).some((command) => REASONS[reason]?.begins?.test(command))
        : REASONS[reason]?.languages.includes(block.language)
    return block.notRun.filter((reason) => !excuses(reason)).map((reason) => `${placeOf(block)}: ${reason}`)
  })
  expect(useless).toEqual([])
  expect(Object.keys(REASONS).filter((reason) => !blocks.some(({ notRun }) => notRun.includes(reason)))).toEqual([])
})

it('every block with a name is read by more than the compiler', () => {
  const others = blocks.filter((block) => {
    const readers = readersOf(block).filter((file) => !/\/(compile|data)\.test\.ts$/.test(file))
    return block.name !== undefined && readers.length === 0
  })
  expect(others.map(placeOf)).toEqual([])
})

it('every file that claims blocks reads them by the one way that finds what it leaves out', () => {
  for (const [file, claims] of Object.entries(READERS)) {
    const source = readFileSync(join(ROOT, file), 'utf8')
    expect(blocks.filter(claims).length, file).toBeGreaterThan(0)
    expect(source, file).toContain(file.endsWith('.mjs') ? `readerOf('${file}')` : 'blocksFor(import.meta.url)')
  }
})

it('the checks of the packages read the blocks that they claim', () => {
  const all = [firstAppChecks, frameworkChecks, proxyChecks, reactNativeChecks, releaseChecks]
  expect(all.every((checks) => checks.length > 0)).toBe(true)
  const files = Object.keys(READERS).filter((file) => file.endsWith('.mjs'))
  for (const file of files) expect(readerOf(file).unread(), file).toEqual([])
})

it('the parser finds every fence', () => {
  for (const page of pages()) {
    const fences = readFileSync(join(ROOT, page), 'utf8').match(/^[ >]*(```|~~~)/gm)?.length ?? 0
    expect(2 * blocksOf(page).length, page).toBe(fences)
  }
})

it('reads blocks in lists, and refuses comments that stand before none', () => {
  const list = ['1. One', '', '   <!-- run: a -->', '   ```sh', '   echo 1', '   ```']
  expect(blocksOf('a.md', list.join('\n'))).toEqual([
    { page: 'a.md', line: 5, language: 'sh', code: 'echo 1', name: 'a', continues: false, notRun: [] },
  ])
  expect(() => blocksOf('a.md', '<!-- run: a -->\n\ntext')).toThrow('a.md:2 a comment about a block has no block')
  expect(() => blocksOf('a.md', '```sh\necho 1')).toThrow('a.md:2 a fence has no end')
  expect(() => blocksOf('a.md', `${list.join('\n')}\n\n${list.join('\n')}`)).toThrow('two blocks are named a')
})
