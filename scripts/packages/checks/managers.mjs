import { installedProgram, TOOL_VERSIONS } from '../programs.mjs'
import { expectTransport, startServer } from './server.mjs'

/** Programs of other package managers: how they install, and run a program of a package. */
const MANAGERS = [
  { name: 'pnpm', program: 'bin/pnpm.cjs', add: ['add'], exec: ['exec'] },
  { name: 'yarn', program: 'bin/yarn.js', add: ['add', '--ignore-engines'], exec: ['run'] },
  { name: '@yarnpkg/cli-dist', program: 'bin/yarn.js', add: ['add'], exec: ['run'] },
]

/** @type {import('../check.mjs').Check[]} */
export const managerChecks = MANAGERS.map(({ name, program, add, exec }) => ({
  name: `${name} ${TOOL_VERSIONS[name]} installs the server, and it starts`,
  async run({ newProject, registry, engine }) {
    const manager = await installedProgram(name, TOOL_VERSIONS[name], program)
    const project = await newProject('manager')
    project.write({
      // Yarn 4 reads no .npmrc, and refuses plain HTTP.
      '.yarnrc.yml': `npmRegistryServer: '${registry.url}'\nunsafeHttpWhitelist: ['127.0.0.1']\nenableTelemetry: false\nenableGlobalCache: false\nenableImmutableInstalls: false\n`,
      'yarn.lock': '',
    })
    await project.run('node', manager, ...add, 'webmq-server')
    const server = await startServer(project, ['node', manager, ...exec, 'webmq-server'])
    const says = await expectTransport(server, engine)
    await server.stop()
    return says
  },
}))
