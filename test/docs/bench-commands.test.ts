import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { planRun } from '../../packages/bench/src/cli.js'
import { ROOT } from './blocks.js'

const SILENT = { stdout: { write: () => undefined }, stderr: { write: () => undefined } }

/** Commands of the table of published tests. */
function commandsOf(page: string): string[] {
  const [, section = ''] = /## Every published test and its command\n(.*?)\n## /s.exec(page) ?? []
  return [...section.matchAll(/\| `(--[^`]*)` \|/g)].map(([, args = '']) => args)
}

describe('the table of published tests in docs/benchmarks.md', () => {
  const commands = commandsOf(readFileSync(`${ROOT}docs/benchmarks.md`, 'utf8'))

  it('has a command for every one', () => {
    expect(commands.length).toBeGreaterThan(30)
  })

  it.each(commands)('names flags that the bench takes: node benchmark.js %s', (args) => {
    const { planned } = planRun(args.split(' ').filter(Boolean), SILENT)
    expect(planned.heading).not.toBe('')
  })
})
