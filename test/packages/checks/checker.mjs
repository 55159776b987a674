/** @type {import('../check.mjs').Check[]} */
export const checkerChecks = [
  {
    name: 'npx webmq-check --url judges an installed server',
    async run({ newProject, server }) {
      const project = await newProject('check')
      await project.run('npm', 'install', 'webmq-check')
      const url = `${server.url.replace(/^http/, 'ws').replace(/\/ws$/, '')}/ws`
      const said = await project.run('npx', 'webmq-check', '--url', url, '--schedules', '1', '--seconds', '3')
      if (!said.includes('HELD')) throw new Error(said)
    },
  },
]
