import { Command } from 'commander'
import type { Terminal } from './terminal.js'

/** `outbox schema`: what an operator runs once in the database. */
export function outboxSchemaCommand(terminal: Terminal): Command {
  return new Command('schema')
    .description('Print the SQL that creates the table of --outbox; it changes no table that exists.')
    .addHelpText('before', "Example:\n  webmq-server outbox schema | psql 'postgres://admin@db.example/app'\n")
    .action(async () => {
      const { SCHEMA } = await import('../outbox/schema.js')
      terminal.stdout.write(SCHEMA)
    })
}
