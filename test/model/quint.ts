import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const PROGRAM = fileURLToPath(import.meta.resolve('@informalsystems/quint/dist/src/cli.js'))
const TIMEOUT_MS = 600_000

/** Names of runs. */
export interface QuintResult {
  readonly passed: readonly string[]
  readonly failed: readonly string[]
}

/**
 * Plays the runs of the main module of a file whose names match. It is parsed and its types are checked first.
 * @throws {Error} when it is no valid module.
 */
export async function quintTest(
  file: string,
  { match, sampleCount, seed }: { readonly match: string; readonly sampleCount: number; readonly seed: number },
): Promise<QuintResult> {
  const folder = await mkdtemp(join(tmpdir(), 'quint-'))
  const out = join(folder, 'out.json')
  try {
    // The evaluator in TypeScript comes with the package; the one in Rust would be downloaded.
    const args = ['test', file, '--backend', 'typescript', '--match', match, '--out', out]
    await run([...args, '--max-samples', String(sampleCount), '--seed', String(seed)])
    const { stage, errors, passed, failed } = JSON.parse(await readFile(out, 'utf8'))
    if (stage !== 'testing') throw new Error(`${file} is not valid: ${JSON.stringify(errors)}`)
    return { passed, failed }
  } finally {
    await rm(folder, { recursive: true })
  }
}

/** Plays the runs of a module that is written for it. It may import those of this folder. */
export async function quintTestOf(text: string): Promise<QuintResult> {
  const file = join(import.meta.dirname, `.trace-${process.pid}.qnt`)
  await writeFile(file, text)
  try {
    return await quintTest(file, { match: '^holds', sampleCount: 1, seed: 1 })
  } finally {
    await rm(file)
  }
}

/** Resolves also when a run has failed, with status 1. */
async function run(args: readonly string[]): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    execFile(process.execPath, [PROGRAM, ...args], { timeout: TIMEOUT_MS }, (error, stdout, stderr) => {
      if (error === null || error.code === 1) resolve()
      else reject(new Error(`quint ${args.join(' ')}: ${error.message}\n${stdout}${stderr}`, { cause: error }))
    })
  })
}
