// Runs units as systemd would: files with their drop-ins, specifiers, credentials, state folders, restarts.
import { execFile, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'

const MAX_OUTPUT_CHARS = 20_000
const RESTART_LIMIT = 20
/** Of a unit of the type `notify`: what it waits for comes from systemd, so here it is tried until it is so. */
const POST_ATTEMPTS = 30

/** The words of a value: at spaces, but not within quotes. */
function wordsOf(value) {
  return [...value.matchAll(/(?:"((?:[^"\\]|\\.)*)"|(\S+))(?= |$)/g)].map(([, quoted, plain]) =>
    quoted === undefined ? plain : quoted.replace(/\\(.)/g, '$1'),
  )
}

/** The directives of a unit, as lists: an empty value forgets the ones before, as in systemd. */
function readUnit(folder, name) {
  const file = existsSync(path.join(folder, name)) ? name : name.replace(/@[^.]*\./, '@.')
  const dropIns = path.join(folder, `${file}.d`)
  const more = existsSync(dropIns)
    ? readdirSync(dropIns)
        .toSorted()
        .map((each) => path.join(dropIns, each))
    : []
  const directives = new Map()
  for (const each of [path.join(folder, file), ...more]) {
    for (const line of readFileSync(each, 'utf8').split('\n')) {
      const [, key, value] = /^([A-Z]\w+)=(.*)$/.exec(line) ?? []
      if (key === undefined) continue
      directives.set(key, value === '' ? [] : [...(directives.get(key) ?? []), value])
    }
  }
  return directives
}

/** A service that runs until it is stopped, and is started again as its unit says. */
export class Unit {
  /** @param folders `units`: the folder of the units; `run`: of credentials; `state`: what `%S` is. */
  constructor(name, folders) {
    this.name = name
    this.output = ''
    this.startCount = 0
    this.directives = readUnit(folders.units, name)
    this.isStopping = false
    const credentials = path.join(folders.run, name)
    const [, instance = ''] = /@([^.]*)\./.exec(name) ?? []
    const specifiers = { i: instance, d: credentials, S: folders.state, n: name, '%': '%' }
    this.valuesOf = (key) =>
      (this.directives.get(key) ?? []).map((value) =>
        value.replace(/%(.)/g, (_, letter) => {
          if (specifiers[letter] === undefined) throw new Error(`${name}: %${letter} is not known`)
          return specifiers[letter]
        }),
      )
    this.credentials = credentials
    this.state = folders.state
    /** Resolves once units that are `After` this one may start. */
    this.started = new Promise((resolve) => {
      this.haveStarted = resolve
    })
  }

  /** Starts it when those of the other units are there that it is `After`. */
  async startAfter(units) {
    const others = this.valuesOf('After').flatMap((line) => line.split(/ +/))
    await Promise.all(others.map((name) => units.get(name)?.started))
    this.start()
  }

  /** Why systemd would not start it; `undefined` if it would. */
  get missing() {
    return this.valuesOf('ConditionPathExists').find((file) => !existsSync(file))
  }

  get environment() {
    return Object.fromEntries(
      this.valuesOf('Environment')
        .flatMap(wordsOf)
        .map((pair) => pair.split(/=(.*)/s).slice(0, 2)),
    )
  }

  /** The words of its command, as the system gets them. Variables of commands are none of these units'. */
  get command() {
    return wordsOf(this.valuesOf('ExecStart').at(-1)).map((word) => word.replaceAll('$$', '$'))
  }

  start() {
    mkdirSync(this.credentials, { recursive: true, mode: 0o700 })
    for (const credential of this.valuesOf('LoadCredential')) {
      const [id, file] = credential.split(/:(.*)/)
      copyFileSync(file, path.join(this.credentials, id))
      chmodSync(path.join(this.credentials, id), 0o400)
    }
    for (const name of this.valuesOf('StateDirectory')) mkdirSync(path.join(this.state, name), { recursive: true })
    const env = { PATH: process.env.PATH, CREDENTIALS_DIRECTORY: this.credentials, ...this.environment }
    for (const line of this.valuesOf('ExecStartPre')) {
      const [first, ...more] = wordsOf(line)
      execFileSync(first, more, { env, cwd: '/' })
    }
    const [command, ...args] = this.command
    const child = spawn(command, args, { cwd: '/', env, stdio: ['ignore', 'pipe', 'pipe'] })
    const take = (text) => {
      this.output = (this.output + text).slice(-MAX_OUTPUT_CHARS)
    }
    child.stdout.setEncoding('utf8').on('data', take)
    child.stderr.setEncoding('utf8').on('data', take)
    child.on('error', (error) => take(String(error)))
    child.once('exit', (code, signal) => {
      const restarts = this.valuesOf('Restart').at(-1)
      const isFailure = code !== 0
      const prevented = this.valuesOf('RestartPreventExitStatus').includes(String(code))
      if (this.isStopping || prevented || !(restarts === 'always' || (restarts === 'on-failure' && isFailure))) return
      this.startCount += 1
      if (this.startCount > RESTART_LIMIT) throw new Error(`${this.name} ends again and again (${signal ?? code})`)
      setTimeout(() => !this.isStopping && this.start(), secondsOf(this.valuesOf('RestartSec').at(-1) ?? '0') * 1_000)
    })
    this.child = child
    void this.#startPost(env, take)
    return this
  }

  async #startPost(env, take) {
    for (const line of this.valuesOf('ExecStartPost')) {
      const [command, ...args] = wordsOf(line.replace(/^-/, ''))
      for (let attempt = 0; attempt < POST_ATTEMPTS && !this.isStopping; attempt++) {
        try {
          await promisify(execFile)(command, args, { env, cwd: '/' })
          break
        } catch (error) {
          take(String(error))
          await delay(500)
        }
      }
    }
    this.haveStarted()
  }

  async stop() {
    this.isStopping = true
    const { child } = this
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const limitS = secondsOf(this.valuesOf('TimeoutStopSec').at(-1) ?? '90s')
    const timer = setTimeout(() => child.kill('SIGKILL'), limitS * 1_000)
    child.kill('SIGTERM')
    await once(child, 'exit')
    clearTimeout(timer)
  }

  /** Stops it, reads its unit again and starts it. */
  async restart(folders) {
    await this.stop()
    const next = new Unit(this.name, folders)
    Object.assign(this, { directives: next.directives, isStopping: false })
    return this.start()
  }
}

function secondsOf(text) {
  return Number.parseFloat(text)
}

/** The services that a target wants. */
export function wantedBy(folder, target) {
  return (readUnit(folder, target).get('Wants') ?? []).flatMap((line) => line.split(/ +/))
}
