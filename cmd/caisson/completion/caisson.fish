# Completion of caisson for fish. It asks "caisson __complete" for the words that may come next, and executes nothing else
# of the command line.

# __caisson_ask prints the words that may come next, and a directive on the last line.
function __caisson_ask
    set -l given
    for raw in (commandline -opc)
        # Variables are replaced, but nothing that could be a command.
        set -l variable (string match -r -- '^\$([A-Za-z_]\w*)(.*)' $raw)
        if set -q variable[1]
            set raw "$$variable[2]$variable[3]"
        else if string match -qr '^~(/|$)' -- $raw
            set raw $HOME(string sub -s 2 -- $raw)
        end
        set -a given "$raw"
    end
    set -l program $given[1]
    set -e given[1]
    type -q -f -- $program; or set program caisson # for an alias
    set -l word (__caisson_word)
    set -l flag (string match -r -- '^-[^=]*=' $word)
    for line in (command $program __complete $given "$word" 2>/dev/null)
        string match -qr '^:\d+$' -- $line; and echo $line; or echo -- "$flag$line"
    end
end

# __caisson_word prints the word at the cursor, without quotes.
function __caisson_word
    set -l raw (commandline -ct)
    for open in '' "'" '"'
        string unescape -- $raw$open; and return
    end
    echo -- $raw
end

function __caisson_words
    set -l lines (__caisson_ask)
    set -l directive (string sub -s 2 -- $lines[-1])
    test -n "$directive"; and test (math "bitand($directive, 24)") -eq 0; or return
    printf '%s\n' $lines[1..-2]
    set -l word (__caisson_word)
    if test (math "bitand($directive, 4)") -eq 0; and string match -q '@*' -- $word
        set -l path (string sub -s 2 -- $word)
        for found in $path*
            echo -- @$found
        end
    end
end

function __caisson_takes_files
    set -l directive (string sub -s 2 -- (__caisson_ask)[-1])
    test -n "$directive"; and test (math "bitand($directive, 4)") -eq 0
end

complete -c caisson -e
complete -c caisson -f -a '(__caisson_words)'
complete -c caisson -n __caisson_takes_files -F
