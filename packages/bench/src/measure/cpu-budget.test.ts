import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { RunError } from '../exit-codes.js'
import { CpuBudgets } from './cpu-budget.js'

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
