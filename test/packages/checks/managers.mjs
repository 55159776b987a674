import { installedProgram, TOOL_VERSIONS } from '../programs.mjs'
import { expectTransport, startServer } from './server.mjs'

/** Programs of other package managers: how they install, and run a program of a package. */
export const MANAGERS = [
  { name: 'pnpm', program: 'bin/pnpm.cjs', add: ['add'], exec: ['exec'] },
  { name: 'yarn', program: 'bin/yarn.js', add: ['add'], exec: ['run'] },
  { name: '@yarnpkg/cli-dist', program: 'bin/yarn.js', add: ['add'], exec: ['run'] },
]

/** @type {import('../check.mjs').Check[]} */
export const managerChecks = MANAGERS.map(({ name, program, add, exec }) => ({
  name: `${name} ${TOOL_VERSIONS[name]} installs the server, and it starts`,
  async run({ newProject, registry, engine }) {
    const manager = await installedProgram(name, TOOL_VERSIONS[name], program)
    const project = await newProject('manager')
    writeSettings(project, registry)
    await project.run('node', manager, ...add, 'webmq-server')
    const server = await startServer(project, ['node', manager, ...exec, 'webmq-server'])
    const says = await expectTransport(server, engine)
    await server.stop()
    return says
  },
}))

/** What the managers need beside `.npmrc`. */
export function writeSettings(project, registry) {
  project.write({ '.yarnrc.yml': yarnrc(registry.url), 'yarn.lock': '' })
}

/** Yarn 4 reads no .npmrc, refuses plain HTTP, and takes no package that is younger than a day. */
const yarnrc = (url) => `npmRegistryServer: '${url}'
unsafeHttpWhitelist: ['127.0.0.1']
npmPreapprovedPackages: ['webmq-*']
enableTelemetry: false
enableGlobalCache: false
enableImmutableInstalls: false
`
