import { execFile } from 'node:child_process'
import { mkdir, rm } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { afterAll, expect, it } from 'vitest'
import { bundlePlays } from './bundle.js'
import { MUTANTS } from './mutants.js'

const run = promisify(execFile)

/** As deep as `packages/server/dist/cli`, so that the server finds its manifest and the libraries of brokers. */
const FOLDER = path.resolve('packages/server/node_modules/.seeded')
/** Schedules in which a mutant must be found. */
const MAX_SCHEDULES = 2_000
const FIRST_SEED = 1
interface Summary {
  readonly playedCount: number
  readonly violationCount: number
}

afterAll(() => rm(FOLDER, { recursive: true, force: true }))

it.each(MUTANTS)('finds that $name', async ({ name, broker, theme, patch }) => {
  await mkdir(FOLDER, { recursive: true })
  const bundle = path.join(FOLDER, `${MUTANTS.findIndex((each) => each.name === name)}.mjs`)
  await bundlePlays(bundle, [patch])
  const series = path.resolve('test/seeded/series.mjs')
  const args = [series, bundle, broker, theme, String(FIRST_SEED), String(MAX_SCHEDULES), 'first']
  const { stdout } = await run(process.execPath, args)
  const lines = stdout.trim().split('\n')
  const { playedCount, violationCount } = JSON.parse(lines.at(-1) ?? '') as Summary
  const [rule] = /"rule":"[^"]*"/.exec(lines[0] ?? '') ?? []
  console.log(`${name}: ${violationCount > 0 ? `found by schedule ${playedCount} (${rule})` : `not in ${playedCount}`}`)
  expect(violationCount, `${name}: not found in ${playedCount} schedules`).toBeGreaterThan(0)
})
