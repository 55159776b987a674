import {
  chmodSync,
  chownSync,
  existsSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { runInProcess } from './in-process.js'

const isRoot = process.getuid?.() === 0
if (!isRoot) console.info('init-links: what only root can do is not tried: run these tests as root for all of them')
/** Whose the containers of root are. */
const USER = 1000

let base: string
let folder: string
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'webmq-links-'))
  // As /root is: the user of the containers does not see what is in it.
  folder = join(base, 'root/webmq')
  mkdirSync(join(base, 'root'), { mode: 0o700 })
  chmodSync(base, 0o755)
  onTestFinished(() => rmSync(base, { recursive: true }))
})

const init = (...more: string[]) => runInProcess(['init', 'compose', folder, '--host', 'chat.example.org', ...more])

/** It once ended with 1 on a busy machine: then its words are told. */
async function initialize(): Promise<void> {
  const { exitCode, stderr } = await init()
  expect(exitCode, stderr).toBe(0)
}

/** What stands outside of the folder: its user must get nothing of it. */
function outside(name: string, text = 'precious'): string {
  const file = join(base, name)
  mkdirSync(join(file, '..'), { recursive: true })
  writeFileSync(file, text, { mode: 0o600 })
  return file
}

const stateOf = (file: string) => {
  const { uid, gid, mode, ino } = statSync(file)
  return { uid, gid, mode, ino, text: statSync(file).isFile() ? readFileSync(file, 'utf8') : '' }
}

/** Puts a link in the place of a file of the installation, as a program of its containers could. */
function replace(name: string, target: string): void {
  rmSync(join(folder, name), { recursive: true, force: true })
  symlinkSync(target, join(folder, name))
  if (isRoot) lchownSync(join(folder, name), USER, USER)
}

// Symptom: `init compose --force` as root gave /etc to the user of the containers, or emptied a file there. Cause: it wrote and
// gave away whatever the paths of the installation led to, and `data/` and `secrets/` belong to that user.
describe('init --force', () => {
  it.each([
    ['a file of data', 'data/broker/keep'],
    ['a secret', 'secrets/grafana-password'],
    ['the list of git', '.gitignore'],
  ])('writes into no file that a link in the place of %s leads to', async (_, name) => {
    await initialize()
    // The user of the containers may read it: what it keeps as a secret is no news.
    const victim = outside('victim')
    if (isRoot) chownSync(victim, USER, USER)
    const before = stateOf(victim)
    replace(name, victim)
    const { exitCode, stderr } = await init('--force')
    expect(stateOf(victim), stderr).toEqual(before)
    expect(exitCode, stderr).toBe(0)
    expect(lstatSync(join(folder, name)).isFile()).toBe(true)
  })

  it.skipIf(!isRoot).each(['data', 'secrets'])(
    'refuses a link of others in the place of the folder %s',
    async (name) => {
      await initialize()
      mkdirSync(join(base, 'elsewhere'))
      const before = stateOf(join(base, 'elsewhere'))
      replace(name, join(base, 'elsewhere'))
      const { exitCode, stderr } = await init('--force')
      expect(stderr).toContain(join(folder, name))
      expect(exitCode).toBe(2)
      expect(stateOf(join(base, 'elsewhere'))).toEqual(before)
      expect(existsSync(join(base, 'elsewhere/api-key'))).toBe(false)
    },
  )

  it.skipIf(!isRoot)(
    'gives the user of the containers its folders and secrets, and nothing that it has linked',
    async () => {
      await initialize()
      for (const name of ['secrets', 'secrets/api-key', 'data', 'data/broker', 'data/proxy/keep'])
        expect([name, statSync(join(folder, name)).uid, statSync(join(folder, name)).gid]).toEqual([name, USER, USER])
      expect(statSync(join(folder, 'secrets/api-key')).mode & 0o777).toBe(0o600)
      expect(statSync(join(folder, 'webmq.json')).uid).toBe(0)
      const victims = [outside('etc/shadow'), outside('root/key'), join(base, 'etc')]
      const before = victims.map(stateOf)
      replace('data/x', join(base, 'etc'))
      replace('secrets/x', join(base, 'root/key'))
      expect(await init('--force')).toMatchObject({ exitCode: 0 })
      expect(victims.map(stateOf)).toEqual(before)
    },
  )

  it.skipIf(!isRoot)('shows the user of the containers no file of root', async () => {
    await initialize()
    replace('secrets/grafana-password', outside('etc/shadow'))
    const { exitCode, stderr } = await init('--force')
    expect(stderr).toContain('EACCES')
    expect(exitCode).toBe(2)
    expect(lstatSync(join(folder, 'secrets/grafana-password')).isSymbolicLink()).toBe(true)
  })

  it.skipIf(!isRoot)('writes nothing as root in a folder of data that leads elsewhere', async () => {
    await initialize()
    mkdirSync(join(base, 'etc'))
    replace('data/broker', join(base, 'etc'))
    expect(await init('--force')).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('EACCES') })
    expect(existsSync(join(base, 'etc/keep'))).toBe(false)
    expect([process.geteuid?.(), process.getegid?.()]).toEqual([0, process.getgid?.()])
  })

  it('takes folders that the operator has put on another disk', async () => {
    mkdirSync(folder)
    for (const name of ['data', 'secrets']) {
      mkdirSync(join(base, `disk/${name}`), { recursive: true })
      symlinkSync(join(base, `disk/${name}`), join(folder, name))
    }
    await initialize()
    expect(await init('--force')).toMatchObject({ exitCode: 0 })
    expect(existsSync(join(base, 'disk/data/broker/keep'))).toBe(true)
    if (isRoot) expect(statSync(join(base, 'disk/secrets/api-key')).uid).toBe(USER)
  })

  it('makes the folders of another broker in the data that there is', async () => {
    await initialize()
    writeFileSync(join(folder, 'data/broker/log'), 'log')
    expect(await init('--force', '--broker', 'nats')).toMatchObject({ exitCode: 0 })
    expect(readFileSync(join(folder, 'data/broker/log'), 'utf8')).toBe('log')
    if (isRoot) expect(statSync(join(folder, 'data/broker-3')).uid).toBe(USER)
  })
})
