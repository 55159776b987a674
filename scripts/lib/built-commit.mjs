import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { must, ROOT, run, StepError, step } from './steps.mjs'

export async function git(...args) {
  const { exitCode, output } = await run('git', args, { log: 'git' })
  if (exitCode !== 0) throw new StepError(`git ${args.join(' ')}: ${output.trim()}`)
  return output.trim()
}

/** Whether this clone has the commit; a shallow one may not. */
export async function hasCommit(commit) {
  const { exitCode } = await run('git', ['cat-file', '-e', `${commit}^{commit}`], { log: 'git' })
  return exitCode === 0
}

/**
 * A worktree of a commit, built once by its own scripts.
 * @param {string} commit The whole hash.
 * @param {string} cache Name of the folder in `.cache`.
 * @returns {Promise<string>} Its folder.
 */
export async function builtCommit(commit, cache) {
  const folder = path.join(ROOT, '.cache', cache, commit)
  const stamp = `${folder}.built`
  if (existsSync(stamp) && existsSync(folder)) return folder
  mkdirSync(path.dirname(folder), { recursive: true })
  await git('worktree', 'prune')
  if (!existsSync(folder)) await git('worktree', 'add', '--detach', folder, commit)
  await step(`Building ${commit.slice(0, 10)}`, () =>
    must('The older commit did not build.', process.execPath, ['scripts/build.mjs'], {
      log: `built-${cache}`,
      cwd: folder,
      env: ownEnvironment(),
    }),
  )
  writeFileSync(stamp, '')
  return folder
}

/** Without the programs of another commit: each takes what it has built itself. */
export function ownEnvironment() {
  const { CARGO_TARGET_DIR: _, WEBMQ_NATIVE_ADDON: __, WEBMQ_LOADGEN: ___, ...rest } = process.env
  return rest
}
