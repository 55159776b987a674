import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { parse as parseYaml } from 'yaml'

const FOLDER = fileURLToPath(new URL('../.github/workflows/', import.meta.url))
const readWorkflow = (file: string) => readFileSync(FOLDER + file, 'utf8')

interface Workflow {
  readonly permissions?: Readonly<Record<string, string>>
  readonly jobs: Readonly<Record<string, { readonly permissions?: Readonly<Record<string, string>> }>>
}

/** What jobs may write. All others read. */
const WRITES: Readonly<Record<string, readonly string[]>> = {
  'codeql.yml analyse': ['security-events'],
  'release.yml version': ['contents', 'pull-requests'],
  'release.yml publish': ['id-token'],
  'release.yml image': ['packages'],
  'release.yml signed': ['packages', 'id-token', 'attestations'],
  'release.yml release': ['contents', 'id-token', 'attestations'],
  'scorecard.yml scorecard': ['security-events', 'id-token'],
}

// An action runs with the rights of its job, and its tag may be moved to other code.
describe('the workflows', () => {
  const files = readdirSync(FOLDER)
  const workflows = files.map((file) => readWorkflow(file))
  const steps = workflows.flatMap((text) => text.split(/^ {6}- /m).slice(1))

  it('take each action by the hash of its commit, and say which version that is', () => {
    const actions = steps.flatMap((step) => /uses: (?!\.\/)(.*)/.exec(step)?.[1] ?? [])
    expect(actions.length).toBeGreaterThan(10)
    for (const action of actions) expect(action).toMatch(/^[\w-]+(?:\/[\w-]+)+@[\da-f]{40} # v\d+\.\d+\.\d+$/)
    // An action in two versions is one that somebody has forgotten.
    expect(new Set(actions).size).toBe(new Set(actions.map((action) => action.split('@')[0])).size)
  })

  it('read, but for a job that must write, and take nothing of a stranger into a run with rights', () => {
    const jobs = files.flatMap((file) => {
      const { permissions, jobs }: Workflow = parseYaml(readWorkflow(file))
      expect(permissions, file).toEqual({ contents: 'read' })
      return Object.entries(jobs).map(([name, job]) => [`${file} ${name}`, job.permissions ?? {}] as const)
    })
    const writing = jobs.map(([job, permissions]) => {
      const names = Object.keys(permissions).filter((name) => permissions[name] === 'write')
      return [job, names] as const
    })
    expect(Object.fromEntries(writing.filter(([, names]) => names.length > 0))).toEqual(WRITES)
    for (const text of workflows) expect(text).not.toMatch(/pull_request_target|workflow_run|secrets: inherit/)
  })

  it('run no code of this repository in the job of a release that writes into it', () => {
    const { jobs } = parseYaml(readWorkflow('release.yml'))
    const text = JSON.stringify(jobs.release)
    expect(text).not.toMatch(/checkout|npm |npx |node |pnpm/)
    expect(text).toContain('gh release create')
  })

  it('install programs of other registries in one version', () => {
    const installed = steps.flatMap((step) =>
      [...step.matchAll(/(?:pip"? install|tool:) (.*)/g)].map(([, names]) => names),
    )
    expect(installed.length).toBeGreaterThan(1)
    for (const name of installed.join(' ').split(' ')) expect(name).toMatch(/^[\w-]+(?:==|@)\d+\.\d+\.\d+$/)
  })

  it('leave no token of the repository beside the code that they test', () => {
    const checkouts = steps.filter((step) => step.startsWith('uses: actions/checkout@'))
    const keeping = checkouts.filter((step) => !step.includes('persist-credentials: false'))
    // The one that commits the next versions.
    expect(keeping).toEqual([expect.stringContaining('fetch-depth: 0')])
  })
})
