import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { describe, expect, it } from 'vitest'
import { RunError } from '../exit-codes.js'
import { CpuBudgets, type GroupFiles } from './cpu-budget.js'

function opened(): CpuBudgets | RunError {
  try {
    return CpuBudgets.open()
  } catch (error) {
    if (error instanceof RunError) return error
    throw error
  }
}

it('a process has its share of CPU time, or a sentence says why it cannot', async () => {
  const budgets = opened()
  if (budgets instanceof RunError) {
    expect(budgets.message).toMatch(/^--node-cpus needs control groups that this user may write: ./)
    return
  }
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'])
  await once(child, 'spawn')
  const groups = () => readFileSync(`/proc/${child.pid}/cgroup`, 'utf8')
  const before = groups()
  budgets.limit(child.pid ?? 0, 0.5)
  expect(groups()).toContain(`webmq-bench-${process.pid}-${child.pid}`)
  expect(groups()).not.toBe(before)
  child.kill('SIGKILL')
  await once(child, 'exit')
  await budgets.stop()
})

describe('control groups of version 2', () => {
  const ROOT = '/sys/fs/cgroup'

  it('give a group its share where the folder of this process has no other process', async () => {
    const tree = new StandInTree('/user.slice/run.scope', { '/user.slice/run.scope': 'delegated' })
    const budgets = CpuBudgets.open(tree.files)
    budgets.limit(42, 0.5)
    const group = `${ROOT}/user.slice/run.scope/webmq-bench-${process.pid}-42`
    expect(tree.read(`${group}/cpu.max`)).toBe('50000 100000')
    expect(tree.read(`${group}/cgroup.procs`)).toBe('42')
    await budgets.stop()
    expect(tree.files.existsSync(group)).toBe(false)
    expect(tree.read(`${ROOT}/user.slice/run.scope/cgroup.subtree_control`)).toBe('')
  })

  it('are made above a folder with processes, where this user may', () => {
    const tree = new StandInTree('/user.slice/run.scope', {
      '/user.slice/run.scope': 'busy',
      '/user.slice': 'delegated',
    })
    CpuBudgets.open(tree.files).limit(42, 1)
    expect(tree.read(`${ROOT}/user.slice/webmq-bench-${process.pid}-42/cpu.max`)).toBe('100000 100000')
  })

  it('say why not, where this user may write none', () => {
    const tree = new StandInTree('/user.slice', { '/user.slice': 'busy', '': 'foreign' })
    expect(() => CpuBudgets.open(tree.files)).toThrow(
      '--node-cpus needs control groups that this user may write: EACCES',
    )
  })
})

type Folder = 'delegated' | 'busy' | 'foreign'

/** The kernel's rules for a tree of control groups of version 2, as far as shares of CPU time need them. */
class StandInTree {
  readonly #files = new Map<string, string>()
  readonly #kinds = new Map<string, Folder>()

  /** @param own Of this process. */
  constructor(own: string, folders: Readonly<Record<string, Folder>>) {
    this.#files.set('/proc/self/cgroup', `0::${own}\n`)
    for (const place of ['', ...Object.keys(folders)]) {
      this.#kinds.set(`/sys/fs/cgroup${place}`, folders[place] ?? 'foreign')
      this.#files.set(`/sys/fs/cgroup${place}/cgroup.subtree_control`, '')
    }
  }

  read(file: string): string | undefined {
    return this.#files.get(file)
  }

  get files(): GroupFiles {
    const files = this.#files
    return {
      existsSync: (file) => files.has(String(file)) || this.#kinds.has(String(file)),
      readFileSync: ((file: string) => files.get(file) ?? '') as GroupFiles['readFileSync'],
      writeFileSync: (file, text) => {
        const kind = this.#kinds.get(dirname(String(file)))
        const isControl = String(file).endsWith('subtree_control')
        if (isControl && kind === 'foreign') throw new Error('EACCES: permission denied')
        if (isControl && kind === 'busy')
          throw new Error('EBUSY: a group with processes has no groups with controllers')
        files.set(String(file), text === '-cpu' ? '' : String(text).replace('+', ''))
      },
      mkdirSync: ((folder: string) => {
        if (this.#kinds.get(dirname(folder)) === 'foreign') throw new Error('EACCES: permission denied')
        this.#kinds.set(folder, 'delegated')
        if (files.get(`${dirname(folder)}/cgroup.subtree_control`) === 'cpu')
          files.set(`${folder}/cpu.max`, 'max 100000')
      }) as GroupFiles['mkdirSync'],
      rmdirSync: (folder) => {
        this.#kinds.delete(String(folder))
        for (const file of [...files.keys()]) if (dirname(file) === String(folder)) files.delete(file)
      },
    }
  }
}
