/** @type {import('../check.mjs').Check[]} */
export const benchChecks = [
  {
    name: 'npx webmq-bench --help',
    async run({ newProject }) {
      const project = await newProject('bench')
      await project.run('npm', 'install', 'webmq-bench')
      const help = await project.run('npx', 'webmq-bench', '--help')
      if (!/^Usage: /m.test(help)) throw new Error(help)
    },
  },
]
