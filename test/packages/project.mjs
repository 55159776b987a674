import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { ROOT } from '../../scripts/lib/steps.mjs'

const OUTPUT_TAIL = 1_500
const STOP_TIMEOUT_MS = 5_000

/** Process groups that live. They are not in ours, so an end of this process has to end them. */
const groups = new Set()
process.once('exit', () => {
  for (const pid of groups) killGroup(pid, 'SIGKILL')
})
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => process.exit(1))

function killGroup(pid, signal) {
  try {
    process.kill(-pid, signal)
  } catch (error) {
    // It has ended already.
    if (error.code !== 'ESRCH') throw error
  }
}

/**
 * An empty project outside the repository, with a PATH of its own.
 * @typedef {ReturnType<typeof createProject>} Project
 */

/**
 * @param {object} options
 * @param {string} options.parent folder in which its folder is made
 * @param {string} options.name
 * @param {string} options.npmrc
 * @param {readonly string[]} options.path folders with the programs that it may run
 * @param {string} options.cache folder in which package managers but npm keep what they downloaded
 * @param {AbortSignal} options.signal ends everything that the project has started
 */
export function createProject({ parent, name, npmrc, path: programs, cache, signal }) {
  const folder = mkdtempSync(path.join(realpathSync(parent), `${name}-`))
  const home = path.join(folder, '.home')
  mkdirSync(home)
  const env = {
    PATH: programs.join(path.delimiter),
    HOME: home,
    CI: 'true',
    NO_COLOR: '1',
    // What it has is found by its hash, so it may stay for the next run.
    npm_config_cache: path.join(ROOT, '.cache', 'npm'),
    // pnpm keeps its store there.
    XDG_DATA_HOME: path.join(cache, 'data'),
    YARN_CACHE_FOLDER: path.join(cache, 'yarn'),
    DENO_DIR: path.join(cache, 'deno'),
    BUN_INSTALL_CACHE_DIR: path.join(cache, 'bun'),
  }
  const write = (files) => {
    for (const [file, content] of Object.entries(files)) {
      mkdirSync(path.dirname(path.join(folder, file)), { recursive: true })
      writeFileSync(path.join(folder, file), typeof content === 'string' ? content : JSON.stringify(content))
    }
  }
  write({ '.npmrc': `${npmrc}\n`, 'package.json': { name, private: true, type: 'module' } })

  const begin = (command, args) => {
    signal.throwIfAborted()
    // A group of its own: what npx has started ends with it.
    const child = spawn(command, args, { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true })
    const program = { output: '', onOutput: () => undefined }
    const kill = (signalName) => killGroup(child.pid, signalName)
    groups.add(child.pid)
    const abort = () => kill('SIGKILL')
    signal.addEventListener('abort', abort)
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text) => {
        program.output += text
        program.onOutput()
      })
    }
    program.kill = kill
    program.ended = new Promise((resolve, reject) => {
      child.once('error', reject)
      child.once('close', (code, by) => {
        signal.removeEventListener('abort', abort)
        groups.delete(child.pid)
        resolve(by === null ? code : by)
      })
    })
    return program
  }

  return {
    folder,
    env,
    write,

    /** Another name for a folder. */
    link(name, target) {
      mkdirSync(path.dirname(path.join(folder, name)), { recursive: true })
      symlinkSync(target, path.join(folder, name))
    },

    /** Runs a command to its end. Returns its output; throws with the end of it unless the command succeeds. */
    async run(command, ...args) {
      const program = begin(command, args)
      const code = await program.ended
      signal.throwIfAborted()
      if (code === 0) return program.output
      throw new Error(`${command} ${args.join(' ')} ended with ${code}:\n${program.output.slice(-OUTPUT_TAIL)}`)
    },

    /**
     * Starts a command, and waits for its output to match.
     * @returns {Promise<{ match: RegExpMatchArray, output: () => string, stop: () => Promise<void> }>}
     */
    async start(pattern, command, ...args) {
      const program = begin(command, args)
      const match = await new Promise((resolve, reject) => {
        program.onOutput = () => {
          const found = program.output.match(pattern)
          if (found) resolve(found)
        }
        const fail = (code) => reject(new Error(`${command} ${args.join(' ')} ended with ${code}:\n${program.output}`))
        program.ended.then(fail, reject)
      })
      const stop = async () => {
        program.kill('SIGTERM')
        const late = setTimeout(() => program.kill('SIGKILL'), STOP_TIMEOUT_MS)
        await program.ended
        clearTimeout(late)
      }
      return { match, output: () => program.output, stop }
    },
  }
}
