import { readdir, readFile } from 'node:fs/promises'
import { Adapter } from './adapter.js'
import type { Case } from './case.js'
import { runCase } from './run-case.js'

const CASES = new URL('../../cases/', import.meta.url)

/** How one case ended: `skipped` when the adapter says that it cannot do what the case needs. */
export interface CaseOutcome {
  readonly name: string
  readonly clauses: readonly string[]
  readonly outcome: 'passed' | 'failed' | 'skipped'
  /** Why it failed, or what it needs. */
  readonly reason?: string
}

/** Reads the cases, by file and in their order. */
export async function readCases(): Promise<Case[]> {
  const files = (await readdir(CASES)).filter((file) => file.endsWith('.json')).sort()
  const texts = await Promise.all(files.map((file) => readFile(new URL(file, CASES), 'utf8')))
  return texts.flatMap((text) => JSON.parse(text) as Case[])
}

/**
 * Plays the cases against a client, one after the other.
 * @param command The adapter, with its parameters.
 * @throws {Error} The adapter does not start.
 */
export async function* runCases(
  command: readonly string[],
  { only = '', cwd = process.cwd() }: { readonly only?: string; readonly cwd?: string } = {},
): AsyncGenerator<CaseOutcome, undefined> {
  const cases = (await readCases()).filter(({ name }) => name.includes(only))
  const adapter = new Adapter(command, cwd)
  try {
    const { can } = await adapter.hello
    for (const played of cases) {
      const { name, clauses, needs = [] } = played
      const missing = needs.filter((need) => !can.includes(need))
      if (missing.length > 0) {
        yield { name, clauses, outcome: 'skipped', reason: `the adapter cannot: ${missing.join(', ')}` }
        continue
      }
      try {
        await runCase(played, adapter)
        yield { name, clauses, outcome: 'passed' }
      } catch (error) {
        yield { name, clauses, outcome: 'failed', reason: (error as Error).message }
      }
    }
  } finally {
    await adapter.stop()
  }
  return undefined
}
