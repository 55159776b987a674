export declare function released(text: string, version: string, date: string): string
export declare function partOf(text: string, version: string): string | undefined
