import { ask, askJson } from './api.js'
import { count, element, fillTable } from './elements.js'
import { Plot } from './plot.js'

/** Rates and nodes. @param onNodes Gets the names of the nodes. */
export function createOverview(onNodes) {
  const plots = ['received', 'sent'].map((name) => new Plot(document.querySelector(`#${name}`)))

  return {
    async refresh() {
      const [{ nodes, missing }, metric] = await Promise.all([askJson('/api/info'), metrics()])
      onNodes([...nodes.map(({ node }) => node), ...missing])
      const total = (name) => nodes.reduce((sum, node) => sum + node[name], 0)
      const rates = [total('receivedPerSecond'), total('sentPerSecond')]
      for (const [index, plot] of plots.entries()) plot.add(rates[index])
      const totals = {
        nodes: count(nodes.length),
        connections: count(total('connections')),
        'received per s': count(rates[0]),
        'sent per s': count(rates[1]),
        'slow consumers closed': metric('webmq_transport_slow_consumers_total'),
        'nodes with other options': metric('webmq_cluster_different_peers'),
      }
      document
        .querySelector('#totals')
        .replaceChildren(
          ...Object.entries(totals).flatMap(([name, text]) => [element('dt', name), element('dd', text)]),
        )
      fillTable(
        document.querySelector('#nodes table'),
        ['node', 'version', 'status', 'up', 'connections', 'patterns', 'received/s', 'sent/s', 'broker'],
        nodes
          .map((node) => [
            node.node,
            node.version,
            node.status,
            `${count(node.uptimeMs / 60_000)} min`,
            count(node.connections),
            count(node.patterns),
            count(node.receivedPerSecond),
            count(node.sentPerSecond),
            `${node.broker} ${node.brokerStatus}`,
          ])
          .concat(missing.map((name) => [name, '', 'does not answer'])),
      )
    },
  }
}

/** Sums by name, of the node that answers, where this page may read its metrics. */
async function metrics() {
  const text = await ask('/metrics').then(
    (response) => response.text(),
    () => '',
  )
  return (name) => {
    const values = [...text.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)`, 'gm'))]
    return values.length === 0 ? 'unknown' : count(values.reduce((sum, [, value]) => sum + Number(value), 0))
  }
}
