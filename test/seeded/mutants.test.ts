import { execFile } from 'node:child_process'
import { mkdir, rm } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { afterAll, expect, it } from 'vitest'
import { bundlePlays } from './bundle.js'
import { MUTANTS } from './mutants.js'

const run = promisify(execFile)

/** As deep as `packages/server/dist/doors/cli`, so that the server finds its manifest and the libraries of brokers. */
const FOLDER = path.resolve('packages/server/node_modules/.seeded/mutants')
/** Schedules in which a mutant must be found; those of the model, which speaks no protocol, take a quarter of the time. */
const MAX_SCHEDULES = 2_000
const MAX_MODEL_SCHEDULES = 8_000
const FIRST_SEED = 1
interface Summary {
  readonly playedCount: number
  readonly violationCount: number
}

afterAll(() => rm(FOLDER, { recursive: true, force: true }))

/** Plays up to the first schedule that has a violation. */
async function played(bundle: string, where: readonly string[], seed: number, count: number): Promise<string[]> {
  const series = path.resolve('test/seeded/series.mjs')
  const { stdout } = await run(process.execPath, [series, bundle, ...where, String(seed), String(count), 'first'])
  return stdout.trim().split('\n')
}

it.each(MUTANTS)('finds that $name', async ({ name, broker, theme, patch }) => {
  await mkdir(FOLDER, { recursive: true })
  const [bundle, whole] = ['mutant', 'whole'].map((kind) =>
    path.join(FOLDER, `${MUTANTS.findIndex((each) => each.name === name)}-${kind}.mjs`),
  ) as [string, string]
  await bundlePlays(bundle, [patch])
  await bundlePlays(whole)
  const maxCount = broker === 'model' ? MAX_MODEL_SCHEDULES : MAX_SCHEDULES
  let playedCount = 0
  while (playedCount < maxCount) {
    const where = [broker, theme]
    const lines = await played(bundle, where, FIRST_SEED + playedCount, maxCount - playedCount)
    const summary = JSON.parse(lines.at(-1) ?? '') as Summary
    playedCount += summary.playedCount
    if (summary.violationCount === 0) break
    // What a schedule shows without the defect is not the defect.
    const without = await played(whole, where, FIRST_SEED + playedCount - 1, 1)
    if ((JSON.parse(without.at(-1) ?? '') as Summary).violationCount > 0) continue
    const [rule] = /"rule":"[^"]*"/.exec(lines[0] ?? '') ?? []
    console.log(`${name}: found by schedule ${playedCount} (${rule})`)
    return
  }
  expect.fail(`${name}: not found in ${playedCount} schedules`)
})
