# Completion of caisson for bash, version 4.4 or later. It asks "caisson __complete" for the words that may come next, and
# executes nothing else of the command line.

# __caisson_read splits a command line. It sets words, its complete words without quotes; word, the last one, which may be
# empty; raw, the last one as written; and quote, the quote that is open at its end. Variables are replaced.
__caisson_read() {
    local line=$1 char next name i
    words=() word='' raw='' quote=''
    for ((i = 0; i < ${#line}; i++)); do
        char=${line:i:1}
        if [[ -z $quote && $char == [[:space:]] ]]; then
            [[ -n $raw ]] && words+=("$word")
            word='' raw=''
            continue
        elif [[ -z $quote && $char == [';|&()'] ]]; then
            words=() word='' raw=''
            continue
        fi
        raw+=$char
        if [[ -n $quote && $char == "$quote" ]]; then
            quote=''
        elif [[ $quote == \' ]]; then
            word+=$char
        elif [[ -z $quote && $char == [\'\"] ]]; then
            quote=$char
        elif [[ $char == \\ ]]; then
            next=${line:i+1:1}
            raw+=$next
            [[ -n $quote && $next != ['"$`\'] ]] && word+=$char
            word+=$next
            ((i++))
        elif [[ $char == '$' && ${line:i+1} =~ ^([A-Za-z_][A-Za-z0-9_]*|\{[A-Za-z_][A-Za-z0-9_]*\}) ]]; then
            name=${BASH_REMATCH[0]}
            raw+=$name
            ((i += ${#name}))
            name=${name#\{}
            name=${name%\}}
            word+=${!name-}
        elif [[ $char == '~' && $raw == '~' && ${line:i+1:1} == ['/ '] ]]; then
            word+=$HOME
        else
            word+=$char
        fi
    done
}

# __caisson_quoted sets quoted to a text as it is written behind an open quote, or where none is open.
__caisson_quoted() {
    local text=$1 open=$2 char i
    quoted=''
    for ((i = 0; i < ${#text}; i++)); do
        char=${text:i:1}
        case $open:$char in
        "':'") quoted+="'\\''" ;;
        '":!') quoted+="\"'!'\"" ;;
        '":"' | '":\' | '":$' | '":`') quoted+=\\$char ;;
        [\'\"]:* | :[A-Za-z0-9_=./:,@+-]) quoted+=$char ;;
        *) printf -v char %q "$char" && quoted+=$char ;;
        esac
    done
}

# __caisson_files leaves a word to bash, with what the directive says about files.
__caisson_files() {
    local name
    if ((directive & 16)); then
        compopt +o default -o dirnames
    elif ((directive & 8)); then # the lines are extensions
        compopt -o filenames
        while IFS= read -r name; do
            [[ -d $name || " ${lines[*]} " == *" ${name##*.} "* ]] && COMPREPLY+=("$name")
        done < <(compgen -f -- "$1")
    elif ((directive & 4)); then
        compopt +o default
    fi
}

_caisson() {
    local words word raw quote quoted
    __caisson_read "${COMP_LINE:0:COMP_POINT}"
    local -a given=("${words[@]:1}") lines names=() descriptions=()
    local program=${words[0]} typed=$word flag='' kept=''
    type -P -- "$program" >/dev/null || program=caisson # for an alias
    [[ $typed == -*=* ]] && flag=${typed%%=*}=
    # Readline replaces only $2, the part of the word behind a quote, = or :, and keeps the rest.
    [[ $raw == *"$2" ]] && kept=${raw:0:${#raw}-${#2}}
    __caisson_read "$kept"
    local open=$quote before=$word

    COMPREPLY=()
    mapfile -t lines < <(command -- "$program" __complete "${given[@]}" "$typed" 2>/dev/null)
    ((${#lines[@]})) || return
    local directive=${lines[-1]#:} line name common='' longest=0
    unset 'lines[-1]'
    if [[ $typed == @* ]] && ((!(directive & 4))); then # a file that bash would take for a host
        mapfile -t lines < <(compgen -f -P @ -- "${typed:1}")
        ((${#lines[@]} == 1)) && [[ -d ${lines[0]:1} ]] && lines[0]+=/ && directive=2
    fi
    ((directive & 24)) || for line in "${lines[@]}"; do
        name=$flag${line%%$'\t'*}
        [[ $name == "$typed"* ]] || continue
        ((${#names[@]})) || common=$name
        while [[ $name != "$common"* ]]; do common=${common%?}; done
        __caisson_quoted "${name#"$before"}" "$open"
        names+=("$quoted")
        line=${line#"${line%%$'\t'*}"}
        descriptions+=("${line#$'\t'}")
        ((${#quoted} > longest)) && longest=${#quoted}
    done

    if ((${#names[@]} == 0)); then
        __caisson_files "$2"
        return
    fi
    compopt +o default
    ((directive & 2)) && compopt -o nospace
    if ((${#names[@]} == 1 || COMP_TYPE == 37 || COMP_TYPE == 42)); then
        COMPREPLY=("${names[@]/%/$open}") # to be inserted; readline would close no quote behind the same one
        return
    fi
    __caisson_quoted "${common#"$before"}" "$open"
    if ((COMP_TYPE == 9)) || [[ $common != "$typed" ]]; then
        COMPREPLY=("${quoted}1" "${quoted}2") # what they have in common is inserted
        return
    fi
    local i room=$((${COLUMNS:-80} - longest - 5)) escaped=yes
    for i in "${!names[@]}"; do # to be shown
        name=${names[i]}
        [[ $name == "$quoted"\\* ]] || escaped=''
        line=${descriptions[i]}
        ((${#line} > room)) && line=${line:0:room-1}…
        [[ -n $line ]] && ((room > 8)) && printf -v name '%-*s  (%s)' "$longest" "$name" "$line"
        COMPREPLY+=("$name")
    done
    [[ -z $escaped ]] || COMPREPLY+=("$quoted ") # readline would insert a lone \, which these have in common
}

complete -o default -F _caisson caisson
