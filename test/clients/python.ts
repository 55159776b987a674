import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { ROOT } from '../deploy/files.js'

const run = promisify(execFile)

/** pip may have to load a package. */
const INSTALL_MS = 120_000
const OLDEST = [3, 11]
/** What the client needs, and what checks it. */
const PACKAGES = { client: ['websockets==17.4'], checks: ['mypy==2.4.1', 'ruff==0.17.6', 'hatchling==1.33.0'] }

/** A Python with what the client needs, or why there is none. */
export type FoundPython =
  | { readonly program: string; readonly env: NodeJS.ProcessEnv; readonly missing?: undefined }
  | { readonly missing: string; readonly program?: undefined }

/** Finds `WEBMQ_TEST_PYTHON`, or `python3`, and gets the packages into the repository's cache. */
export async function findPython(which: keyof typeof PACKAGES = 'client'): Promise<FoundPython> {
  const program = process.env.WEBMQ_TEST_PYTHON ?? 'python3'
  try {
    const { stdout } = await run(program, ['-c', 'import sys; print(*sys.version_info[:2])'])
    const [major = 0, minor = 0] = stdout.trim().split(' ').map(Number)
    if (major * 100 + minor < (OLDEST[0] ?? 0) * 100 + (OLDEST[1] ?? 0)) {
      return { missing: `${program} is ${major}.${minor}, older than ${OLDEST.join('.')}` }
    }
    const target = `${ROOT}.cache/python/${which}-${major}.${minor}`
    const packages = which === 'client' ? PACKAGES.client : [...PACKAGES.client, ...PACKAGES.checks]
    const env = { ...process.env, PYTHONPATH: `${ROOT}clients/python/src:${target}`, PYTHONDONTWRITEBYTECODE: '1' }
    // What is there already is not loaded again.
    await run(program, ['-c', `import ${which === 'client' ? 'websockets' : 'mypy, hatchling, websockets'}`], {
      env,
    }).catch(() =>
      run(program, ['-m', 'pip', 'install', '--quiet', '--upgrade', '--target', target, ...packages], {
        timeout: INSTALL_MS,
      }),
    )
    return { program, env }
  } catch (error) {
    return { missing: `no Python with pip, ${(error as Error).message.split('\n')[0]}` }
  }
}
